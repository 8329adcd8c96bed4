"""Where settings come from, and which are refused."""

from ipaddress import ip_network

import pytest

from hookline.app import Hookline
from hookline.config import PRESETS, Settings, load
from hookline.errors import ConfigError
from hookline.rules.retry import DEFAULT_PRESET
from hookline.rules.retry import PRESETS as POLICIES


def test_without_anything_said_every_setting_has_its_default():
    assert load() == Settings()


def test_a_flag_wins_over_a_variable_and_that_over_the_file(tmp_path):
    file = tmp_path / "hookline.toml"
    file.write_text('port = 1\nhost = "10.0.0.1"\npoll_s = 2\nallow_networks = ["10.0.0.0/8"]\n')
    settings = load(
        {"port": "3", "host": None, "database": "sqlite:///x.db"},
        environ={"HOOKLINE_PORT": "2", "HOOKLINE_HOST": "10.0.0.2", "PATH": "/bin"},
        file=file,
    )
    assert settings == Settings(
        port=3,
        host="10.0.0.2",
        poll_s=2.0,
        allow_networks=(ip_network("10.0.0.0/8"),),
        database="sqlite:///x.db",
    )


def test_variables_are_read_by_the_setting_s_type():
    settings = load(
        environ={
            "HOOKLINE_DEV": "yes",
            "HOOKLINE_ALLOW_NETWORKS": "127.0.0.0/8, ::1/128",
            "HOOKLINE_DRAIN_S": "2.5",
            "HOOKLINE_MAX_IN_FLIGHT": "10_000",
            "HOOKLINE_API_KEY": "hlk_abc",
            "HOOKLINE_REQUESTS_PER_KEY": "0.5",
            "HOOKLINE_MAX_CONNECTIONS": "500",
        }
    )
    assert settings == Settings(
        dev=True,
        allow_networks=(ip_network("127.0.0.0/8"), ip_network("::1/128")),
        drain_s=2.5,
        max_in_flight=10_000,
        api_key="hlk_abc",
        requests_per_key=0.5,
        max_connections=500,
    )


def test_what_a_container_platform_sets_for_a_service_called_hookline_is_not_ours():
    environ = {
        "HOOKLINE_SERVICE_HOST": "10.0.0.1",
        "HOOKLINE_SERVICE_PORT": "8080",
        "HOOKLINE_SERVICE_PORT_HTTP": "8080",
        "HOOKLINE_PORT": "tcp://10.0.0.1:8080",
        "HOOKLINE_PORT_8080_TCP_ADDR": "10.0.0.1",
        "HOOKLINE_FAILPOINTS": "",
    }
    assert load(environ=environ) == Settings()


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("PORT", "eighty", "a whole number from 0 to 65,535"),
        ("SMTP_PORT", "0", "a whole number from 1 to 65,535"),
        ("SMTP_TLS", "maybe", "starttls, tls, none"),
        ("SMTP_HOST", "smtp example", "an address or a host name"),
        ("MAIL_FROM", "nobody", "an address such as hookline@example.com"),
        ("ALERT_EVERY_S", "0", "seconds from 0.1 to 3,600"),
        ("NOTIFY_DEATHS_S", "-1", "seconds from 0 to 86,400"),
        ("PORT", "65536", "a whole number from 0 to 65,535"),
        ("PORT", "-1", "a whole number"),
        ("PORT", "８０", "a whole number"),
        ("HOST", "a b", "an address or a host name"),
        ("DEV", "perhaps", "true or false"),
        ("DRAIN_S", "nan", "seconds from 0 to 3,600"),
        ("POLL_S", "0", "seconds from 0.01 to 60"),
        ("ALLOW_NETWORKS", "10.0.0.1/8", "networks such as"),
        ("ALLOW_NETWORKS", "home", "networks such as"),
        ("DENY_NETWORKS", "10.0.0.1/8", "networks such as"),
        ("EGRESS_PROXY", "proxy:3128", "http://host:port or http://user:password@host:port"),
        ("EGRESS_PROXY", "https://proxy:3128", "http://host:port"),
        ("EGRESS_PROXY", "http://proxy", "http://host:port"),
        ("EGRESS_PROXY", "http://proxy:0", "http://host:port"),
        ("EGRESS_PROXY", "http://proxy:65536", "http://host:port"),
        ("EGRESS_PROXY", "http://proxy:3128/path", "http://host:port"),
        ("EGRESS_PROXY", "http://me@proxy:3128", "http://user:password@host:port"),
        ("EGRESS_PROXY", "http://me:se@same@proxy:3128", "%40 for an @"),
        ("EGRESS_PROXY", "http://me:a%0d%0ab@proxy:3128", "http://user:password@host:port"),
        ("CA_FILE", "ca\n.pem", "the path of a file"),
        ("DATABASE", "mysql://x", "sqlite:///path.db or postgresql://"),
        ("DATABASE", "sqlite://x.db", "sqlite:///path.db"),
        ("DATABASE", "sqlite:///", "sqlite:///path.db"),
        ("DATABASE", "postgresql://h:99999/x", "sqlite:///path.db"),
        ("MAX_IN_FLIGHT", "0", "a whole number from 1"),
        ("REQUESTS_PER_KEY", "-1", "a number a second from 0.001 to 1,000,000; 0: any number"),
        ("REQUESTS_PER_KEY", "nan", "a number a second"),
        ("PUBLISH_PER_ACCOUNT", "0.0001", "a number a second"),
        ("PUBLISH_PER_ACCOUNT", "1000001", "a number a second"),
        ("MAX_CONNECTIONS", "0", "a whole number from 1"),
        ("MAX_CONNECTIONS_PER_ADDRESS", "0", "a whole number from 1"),
        ("PAYLOAD_LIMIT_BYTES", "", "a whole number"),
        (
            "RETRY",
            "patience",
            "patient, minute, exponential, brisk, eight, standard, quick. Did you mean patient?",
        ),
        ("RETRY", "", "patient, minute, exponential"),
        ("URL", "localhost:8080", "http://host:port or https://host"),
        ("URL", "ftp://a.example", "http://host:port or https://host"),
        ("URL", "http://me:pw@a.example", "http://host:port or https://host"),
        ("URL", "http://a.example:99999", "http://host:port or https://host"),
        ("URL", "http://a.example/?x=1", "http://host:port or https://host"),
        ("PUBLIC_URL", "hooks.example", "http://host:port or https://host"),
        ("PUBLIC_URL", "https://hooks.example/#portal", "http://host:port or https://host"),
        ("PORTAL_FRAME_ANCESTORS", "app.example.com", "origins such as https://app.example.com"),
        ("PORTAL_FRAME_ANCESTORS", "https://app.example.com/", "nothing after it"),
        ("PORTAL_FRAME_ANCESTORS", "https://a.example,https://b.example", "separated by spaces"),
        ("PORTAL_FRAME_ANCESTORS", "https://a.example; script-src *", "separated by spaces"),
        ("PORTAL_FRAME_ANCESTORS", "https://*.example.com", "origins such as"),
        ("PORTAL_FRAME_ANCESTORS", "'self'", "origins such as"),
        ("PORTAL_FRAME_ANCESTORS", "https://me:pw@a.example", "origins such as"),
        ("PORTAL_FRAME_ANCESTORS", "ftp://a.example", "http or https"),
        ("PORTAL_FRAME_ANCESTORS", "https://a.example:0", "perhaps a port"),
        ("PORTAL_FRAME_ANCESTORS", "https://a.example:65536", "perhaps a port"),
        ("PORTAL_FRAME_ANCESTORS", "https://a..example", "origins such as"),
        ("PORTAL_FRAME_ANCESTORS", "https://-a.example", "origins such as"),
        ("PORTAL_FRAME_ANCESTORS", f"https://{'a.' * 126}example", "origins such as"),
        ("PORTAL_FRAME_ANCESTORS", " ".join(f"https://a{n}.example" for n in range(21)), "up to 20 origins"),
        ("PORTAL_NAME", " acme", "1 to 60 printable characters"),
        ("PORTAL_NAME", "a" * 61, "1 to 60 printable characters"),
        ("PORTAL_NAME", "ac\u202eme", "1 to 60 printable characters"),
        ("PORTAL_LOGO", "logo.gif", "an .svg or .png file"),
        ("PORTAL_LOGO", "lo\x1bgo.png", "an .svg or .png file"),
        ("PORTAL_LOGO", "logo.png\n", "an .svg or .png file"),
        ("PORTAL_ACCENT", "1f5fbf", "a colour such as #1f5fbf"),
        ("PORTAL_ACCENT", "#1f5", "a colour such as #1f5fbf"),
        ("PORTAL_ACCENT", "red", "a colour such as #1f5fbf"),
        ("PORTAL_ACCENT", "#ffcc00", "at least 4.5:1 on #fbfbf9; this one has 1.45:1"),
    ],
)
def test_a_bad_value_names_the_variable_the_setting_and_what_is_allowed(variable, value, allowed):
    with pytest.raises(ConfigError) as caught:
        load(environ={f"HOOKLINE_{variable}": value})
    text = str(caught.value)
    assert text.startswith(f"HOOKLINE_{variable}: ")
    assert variable.lower() in text
    assert allowed in text


def test_a_variable_that_nobody_filled_in_is_not_set():
    names = (
        "API_KEY",
        "SECRET_KEY",
        "ALLOW_NETWORKS",
        "DENY_NETWORKS",
        "EGRESS_PROXY",
        "CA_FILE",
        "CONTACT",
        "PUBLIC_URL",
    )
    names += ("PORTAL_FRAME_ANCESTORS", "PORTAL_NAME", "PORTAL_LOGO", "PORTAL_ACCENT")
    assert load(environ={f"HOOKLINE_{name}": "" for name in names}) == Settings()


def test_a_bad_flag_and_a_bad_file_are_named_by_their_own_names(tmp_path):
    with pytest.raises(ConfigError, match=r"^--port: 'x' is not valid for port"):
        load({"port": "x"})
    file = tmp_path / "hookline.toml"
    file.write_text("port = true\n")
    with pytest.raises(ConfigError, match=r"hookline\.toml: port: True is not valid for port"):
        load(file=file)
    file.write_text("port =\n")
    with pytest.raises(ConfigError, match=r"hookline\.toml: cannot be read as TOML"):
        load(file=file)


def test_an_unknown_name_is_refused_with_the_nearest_one(tmp_path):
    with pytest.raises(
        ConfigError, match=r"HOOKLINE_DATABSE: unknown setting\. Did you mean HOOKLINE_DATABASE\?"
    ):
        load(environ={"HOOKLINE_DATABSE": "sqlite:///x.db"})
    file = tmp_path / "hookline.toml"
    file.write_text("prot = 80\n")
    with pytest.raises(ConfigError, match=r"prot: unknown setting\. Did you mean port\?"):
        load(file=file)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"SMTP_USERNAME": "u"}, "HOOKLINE_SMTP_USERNAME: smtp_username and smtp_password belong together"),
        ({"SMTP_PASSWORD": "sesame"}, "HOOKLINE_SMTP_PASSWORD: smtp_username and smtp_password belong"),
        (
            {"SMTP_USERNAME": "u", "SMTP_PASSWORD": "sesame", "SMTP_TLS": "none"},
            "HOOKLINE_SMTP_TLS: smtp_tls=none would send",
        ),
        ({"SMTP_HOST": "::1"}, "HOOKLINE_SMTP_HOST: set mail_from too"),
        ({"SMTP_PASSWORD": "ses\name"}, "HOOKLINE_SMTP_PASSWORD: *** is not valid"),
    ],
)
def test_settings_for_mail_that_would_not_work_are_refused_and_show_no_password(given, said):
    with pytest.raises(ConfigError) as refused:
        load(environ={f"HOOKLINE_{name}": value for name, value in given.items()})
    assert str(refused.value).startswith(said)
    assert "ses" not in str(refused.value)


def test_settings_that_do_not_fit_together_are_refused():
    with pytest.raises(ConfigError, match="HOOKLINE_HEARTBEAT_S: takeover_s"):
        load(environ={"HOOKLINE_HEARTBEAT_S": "9"})
    with pytest.raises(ConfigError, match="HOOKLINE_BATCH_LIMIT_BYTES: batch_limit_bytes"):
        load(environ={"HOOKLINE_BATCH_LIMIT_BYTES": "1000"})


def test_secrets_never_show():
    settings = Settings(
        api_key="hlk_canary", database="postgresql://me:canary@db/x?sslmode=require&password=canary"
    )
    assert "canary" not in repr(settings) + str(settings)
    settings = Settings(egress_proxy="http://canary:canary@proxy:3128")
    assert "canary" not in repr(settings)
    assert "http://***@proxy:3128" in repr(settings)
    for url in ("http://me:canary@proxy", "me:canary"):
        with pytest.raises(ConfigError) as caught:
            load(environ={"HOOKLINE_EGRESS_PROXY": url})
        assert "canary" not in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        load(environ={"HOOKLINE_API_KEY": "canary with spaces"})
    assert "canary" not in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        load(environ={"HOOKLINE_DATABASE": "postgresql://me:canary@db:0/x"})
    assert "canary" not in str(caught.value)


def test_every_preset_can_be_the_default():
    assert set(PRESETS) == set(POLICIES)
    assert Settings().retry == DEFAULT_PRESET
    assert [load(environ={"HOOKLINE_RETRY": name}).retry for name in PRESETS] == list(PRESETS)


def test_the_server_s_url_may_have_a_path():
    assert load(environ={"HOOKLINE_URL": "https://hooks.example/base/"}).url == "https://hooks.example/base"


def test_how_the_portal_looks_and_who_may_frame_it_is_read_strictly(tmp_path):
    settings = load(
        environ={
            "HOOKLINE_PUBLIC_URL": "https://hooks.example/base/",
            "HOOKLINE_PORTAL_FRAME_ANCESTORS": "https://App.example.com  http://127.0.0.1:3000 https://app.example.com",
            "HOOKLINE_PORTAL_NAME": "A & B \N{SNOWMAN}",
            "HOOKLINE_PORTAL_LOGO": "/etc/hookline/logo.SVG",
            "HOOKLINE_PORTAL_ACCENT": "#1F5FBF",
        }
    )
    assert settings == Settings(
        public_url="https://hooks.example/base",
        portal_frame_ancestors=("https://app.example.com", "http://127.0.0.1:3000"),
        portal_name="A & B \N{SNOWMAN}",
        portal_logo="/etc/hookline/logo.SVG",
        portal_accent="#1f5fbf",
    )
    file = tmp_path / "hookline.toml"
    file.write_text('portal_frame_ancestors = ["https://a.example", "http://localhost"]\n')
    assert load(file=file).portal_frame_ancestors == ("https://a.example", "http://localhost")
    file.write_text('portal_frame_ancestors = ["https://a.example https://b.example"]\n')
    with pytest.raises(ConfigError, match="separated by spaces"):
        load(file=file)


@pytest.mark.parametrize(("accent", "is_allowed"), [("#747474", True), ("#757575", False)])
def test_an_accent_is_refused_just_below_the_contrast_that_reading_needs(accent, is_allowed):
    if is_allowed:
        assert load({"portal_accent": accent}).portal_accent == accent
    else:
        with pytest.raises(ConfigError, match=r"this one has 4\.4[0-9]:1"):
            load({"portal_accent": accent})


def test_how_long_things_are_kept_is_in_days_and_never_is_none():
    kept = load(environ={"HOOKLINE_KEEP_DELIVERED_DAYS": "never", "HOOKLINE_KEEP_DEAD_DAYS": "7"})
    assert (kept.keep_delivered_days, kept.keep_dead_days) == (0, 7)
    for value in ("-1", "1.5", "soon", "40000", ""):
        with pytest.raises(ConfigError, match=r"HOOKLINE_KEEP_DEAD_DAYS.*days from 1 to 36,500"):
            load(environ={"HOOKLINE_KEEP_DEAD_DAYS": value})


def test_a_database_in_memory_is_refused_also_in_the_library():
    with pytest.raises(ConfigError, match="in memory"):
        Hookline("sqlite:///:memory:")


# --- outboxes of applications ---

SHOP = "postgresql://mover:hunter2hunter2@db.example/shop"


def test_several_outboxes_are_separated_by_commas_or_blanks():
    text = f" {SHOP}, sqlite:////srv/shop.db\nsqlite:///other.db "
    found = load(environ={"HOOKLINE_OUTBOX": text})
    assert found.outbox == (SHOP, "sqlite:////srv/shop.db", "sqlite:///other.db")
    assert load(environ={"HOOKLINE_OUTBOX": ""}).outbox == ()


def test_the_password_of_an_outbox_is_never_shown():
    assert "hunter2" not in repr(load(environ={"HOOKLINE_OUTBOX": SHOP}))
    with pytest.raises(ConfigError) as refused:
        load(environ={"HOOKLINE_OUTBOX": SHOP + "@"})
    assert str(refused.value).startswith(
        "HOOKLINE_OUTBOX: the value is not valid for outbox; allowed: sqlite:///"
    )
    assert "hunter2" not in str(refused.value)


def test_a_database_is_named_once_among_the_outboxes():
    with pytest.raises(ConfigError, match="each database once"):
        load(environ={"HOOKLINE_OUTBOX": f"{SHOP},postgresql://other:pass@db.example/shop"})


@pytest.mark.parametrize(
    "other",
    [
        "postgres://db.example:5432/shop",
        "postgresql://x@DB.example/shop",
        "postgresql:///shop?host=db.example",
    ],
)
def test_a_server_is_known_under_each_spelling(other):
    with pytest.raises(ConfigError, match="each database once"):
        load(environ={"HOOKLINE_OUTBOX": f"{SHOP} {other}"})
    load(environ={"HOOKLINE_OUTBOX": f"{SHOP} postgresql://db.example:5433/shop"})


def test_a_file_is_known_under_each_spelling(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "shop.db")
    (tmp_path / "below").mkdir()
    for other in ("below/../shop.db", "link.db"):
        with pytest.raises(ConfigError, match="each database once"):
            load(environ={"HOOKLINE_OUTBOX": f"sqlite:///{tmp_path}/shop.db,sqlite:///{tmp_path}/{other}"})


@pytest.mark.parametrize("text", [",", " , ,"])
def test_outboxes_without_a_name_are_refused(text):
    with pytest.raises(ConfigError, match="separated by commas"):
        load(environ={"HOOKLINE_OUTBOX": text})


def test_the_own_database_is_not_named_as_an_outbox(tmp_path):
    environ = {"HOOKLINE_DATABASE": f"sqlite:///{tmp_path}/a.db"}
    with pytest.raises(ConfigError, match="own database is always read"):
        load(environ={**environ, "HOOKLINE_OUTBOX": f"sqlite:///{tmp_path}/./a.db"})
