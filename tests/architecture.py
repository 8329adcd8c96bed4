"""Finds the rules about imports and effects that a module breaks.

It is a function of a module's name and source, so that the tests can also feed it sources that break each rule.
"""

import ast
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

# Bottom to top: a module imports from layers below its own. Within FREE layers it may import its neighbours too.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors"}),
    frozenset({"model"}),
    frozenset({"clock", "failpoints", "ids", "logs", "rfc3339", "version"}),
    frozenset({"crypto"}),
    frozenset({"rules", "store", "receiver"}),
    frozenset({"validate"}),
    frozenset({"config"}),
    frozenset({"outbox"}),
    frozenset({"pipeline", "client"}),
    frozenset({"admin", "reports"}),
    frozenset({"app", "hookline"}),  # "hookline": the package's own __init__
    frozenset({"api"}),
    frozenset({"dashboard"}),
    frozenset({"cli", "testing"}),
    frozenset({"__main__"}),
)
# The pipeline's own packages and modules, bottom to top in the same way.
PIPELINE: tuple[frozenset[str], ...] = (
    frozenset({"histogram", "refused_rows", "measuring", "sending"}),
    frozenset({"catalogue"}),
    frozenset({"membership"}),
    frozenset({"lanes"}),
    frozenset({"attempt", "settle", "intake", "maintenance", "lane_status", "notifying"}),
    frozenset({"lane_events", "outbox"}),
    frozenset({"worker"}),
)
PARTS = {part: rank for rank, layer in enumerate(PIPELINE) for part in layer}
FREE = frozenset({"clock", "app"})  # one name of each layer in which neighbours may import each other
UNITS = {unit: rank for rank, layer in enumerate(LAYERS) for unit in layer}

# What a pure rule may use. A list of what is allowed: an import that nobody thought of is refused.
PURE_MODULES = frozenset(
    {"bisect", "collections", "collections.abc", "dataclasses", "datetime", "decimal", "email.utils", "enum"}
    | {
        "fractions",
        "functools",
        "hashlib",
        "heapq",
        "http",
        "ipaddress",
        "itertools",
        "math",
        "operator",
        "re",
    }
    | {"string", "struct", "typing", "urllib.parse", "zlib", "idna", "msgspec"}
)
PURE_UNITS = frozenset({"errors", "model", "rules"})

CLOCK_READS = frozenset(
    {f"time.{name}{suffix}" for name in ("time", "monotonic", "perf_counter") for suffix in ("", "_ns")}
    | {"time.clock_gettime", "time.clock_gettime_ns", "time.process_time", "time.sleep"}
    | {"datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"}
    | {"asyncio.sleep", "anyio.sleep"}
)
CLOCKS = frozenset({"hookline.clock", "hookline.testing.clock"})
BUILDING = frozenset({"app", "client", "testing"})  # callers of a server build a client; no app does
CHANCE = frozenset({"os.urandom", "uuid.uuid1", "uuid.uuid4"})
SOCKET_NAMES_OF_NO_EFFECT = frozenset({"gaierror", "gethostname", "herror", "timeout"})
BINDING = frozenset({"api", "cli", "testing"})  # these open the sockets they listen on
DIALLING = frozenset(
    {"create_connection", "create_datagram_endpoint", "create_unix_connection", "open_connection"}
    | {"open_unix_connection", "getaddrinfo", "gethostbyname", "getnameinfo", "sock_connect"}
)
# Client commands and clients speak to a server that their user names: no endpoint's URL ever gets there, and
# the sender's guards are not needed. Each has one module that opens connections, with one library.
API_CLIENTS = {
    "hookline.cli.client": "http.client",
    "hookline.client.aio.client": "aiohttp",
    "hookline.client.blocking.client": "http.client",
}
# A client runs in other people's programs: it imports our values and rules, and nothing that serves or stores.
CLIENT_UNITS = frozenset({"client", "clock", "config", "errors", "rfc3339", "rules", "validate", "version"})
CLIENT_CHECKS = frozenset({"hookline.validate.names", "hookline.validate.payload"})  # of what validate/ has
# The outbox too runs in other people's programs, and checks what the API checks.
OUTBOX_UNITS = frozenset({"outbox", "clock", "errors", "ids", "model", "rfc3339", "rules", "validate"})
# Loaded on demand only, where the application's own connection is of it: Django's app, and the event of a commit.
FRAMEWORKS = frozenset({"django", "sqlalchemy"})
WITH_FRAMEWORKS = frozenset({"hookline.outbox.django"})
HTTP_CLIENTS = frozenset(
    {"aiohttp", "httpx", "requests", "urllib3", "pyreqwest", "http.client", "urllib.request", "xmlrpc.client"}
)
# Libraries that open connections of other kinds. Mail is the one way out besides the sender.
OTHER_CLIENTS = frozenset(
    {
        "smtplib",
        "ftplib",
        "poplib",
        "imaplib",
        "nntplib",
        "telnetlib",
        "logging.handlers",
        "xmlrpc",
        "websockets",
    }
    | {"aiosmtplib", "paramiko", "pycurl", "tornado", "twisted", "grpc", "dns", "aiodns"}
)
MAIL_CLIENT = ("hookline.pipeline.notifying.mail", "smtplib")
CODE_FROM_DATA = frozenset({"pickle", "marshal", "shelve", "dill", "cloudpickle"})
CODE_FROM_TEXT = frozenset({"eval", "exec", "compile", "__import__"})
UNSAFE_NAMES = frozenset(
    {"importlib.import_module", "yaml.load", "yaml.unsafe_load", "yaml.full_load"}
    | {"tempfile.mktemp", "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}
    | {"ssl._create_unverified_context", "ssl.CERT_NONE"}
)
# Arguments that switch a check off: of a shell's words, of a certificate, of what a template escapes.
UNSAFE_ARGUMENTS = {"shell": True, "verify": False, "check_hostname": False, "autoescape": False}
SECRET_MAKERS = frozenset({"crypto", "admin"})  # what they make by chance is a key, a secret or a token
# These two load names of our own, from a table, on demand.
ON_DEMAND = frozenset({"hookline", "hookline.cli.root"})
EFFECT_BUILTINS = frozenset({"open", "input", "print", "breakpoint"})


class Rule(StrEnum):
    """The rules, in the words of a failure."""

    RELATIVE = "imports are written in full"
    UNKNOWN = "every module belongs to a layer"
    DIRECTION = "imports point down only"
    PIPELINE = "the pipeline's parts import from parts below their own"
    STORES = "the two stores do not know each other"
    CONTRACT = "the pipeline knows the store by its contract only"
    PURE = "rules are pure"
    CLOCK = "only clock.py reads clocks and sleeps"
    CHANCE = "chance is handed in as a random.Random built by app.py"
    NETWORK = "only net.py resolves names and opens connections"
    CLIENT = "the sender is the only HTTP client"
    SERVER = "a client of the API, or an application's outbox, knows nothing of the server"
    FRAMEWORK = "an application's framework is loaded by the application"
    DRIVER = "a database driver is known to its own store only"
    UNSAFE = "data never becomes code"


class Violation(NamedTuple):
    rule: Rule
    line: int
    what: str


def violations(module: str, source: str) -> list[Violation]:
    """What breaks a rule in this module. `module` is its dotted name; a package's is that of its `__init__`."""
    tree = ast.parse(source)
    found = [*_imports(module, tree), *_names(module, tree)]
    return sorted(found, key=lambda violation: violation.line)


def unit_of(module: str) -> str:
    """The part of hookline that a module belongs to: the name that the layers list."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The dotted name behind every name that is imported, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def name_is(name: str, roots: frozenset[str]) -> bool:
    parts = name.split(".")
    return any(".".join(parts[:length]) in roots for length in range(1, len(parts) + 1))


def _within(module: str, *packages: str) -> bool:
    return name_is(module, frozenset(packages))


def _imports(module: str, tree: ast.AST) -> Iterator[Violation]:
    unit = unit_of(module)
    if unit not in UNITS:
        yield Violation(Rule.UNKNOWN, 1, f"{module} is in no layer of tests/architecture.py")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level > 0:
            yield Violation(Rule.RELATIVE, node.lineno, f"from {'.' * node.level}{node.module or ''}")
    for_types = _lines_for_types(tree)
    on_demand = _lines_on_demand(tree)
    for line, target in imported(tree):
        if target.split(".")[0] == "hookline":
            yield from (
                found
                for found in _own_import(module, unit, line, target)
                if not (found.rule is Rule.PIPELINE and line in for_types)
            )
        elif unit == "rules" and target not in PURE_MODULES and target.rpartition(".")[0] not in PURE_MODULES:
            yield Violation(Rule.PURE, line, target)
        allowed = module in API_CLIENTS and name_is(target, frozenset({API_CLIENTS[module]}))
        if name_is(target, HTTP_CLIENTS) and unit != "testing" and not allowed:
            yield Violation(Rule.CLIENT, line, target)
        if name_is(target, OTHER_CLIENTS) and (module, target) != MAIL_CLIENT:
            yield Violation(Rule.CLIENT, line, target)
        if name_is(target, CODE_FROM_DATA):
            yield Violation(Rule.UNSAFE, line, target)
        if name_is(target, FRAMEWORKS) and line not in on_demand and not name_is(module, WITH_FRAMEWORKS):
            yield Violation(Rule.FRAMEWORK, line, target)
        if name_is(target, frozenset({"asyncpg"})) and not _within(module, "hookline.store.postgres"):
            yield Violation(Rule.DRIVER, line, target)
        if name_is(target, frozenset({"psycopg", "psycopg2"})):
            yield Violation(Rule.DRIVER, line, target)
        if name_is(target, frozenset({"sqlite3"})) and not _within(module, "hookline.store.sqlite"):
            yield Violation(Rule.DRIVER, line, target)


def _lines_for_types(tree: ast.AST) -> frozenset[int]:
    """The lines under `if TYPE_CHECKING`: imports there do not exist when the module runs."""
    return frozenset(
        inner.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
        if isinstance(inner, ast.ImportFrom)
    )


def _lines_on_demand(tree: ast.AST) -> frozenset[int]:
    """The lines inside functions: imports there happen when they are called."""
    return frozenset(
        inner.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    )


def _own_import(module: str, unit: str, line: int, target: str) -> Iterator[Violation]:
    other = unit_of(target)
    if other not in UNITS:  # a public name of the package itself
        other = "hookline"
    if unit == "rules" and other not in PURE_UNITS:
        yield Violation(Rule.PURE, line, target)
    for own, units in (("client", CLIENT_UNITS), ("outbox", OUTBOX_UNITS)):
        if unit == own and (
            other not in units or (other == "validate" and not name_is(target, CLIENT_CHECKS))
        ):
            yield Violation(Rule.SERVER, line, target)
    if unit == other == "pipeline":
        yield from _part_import(module, line, target)
    if unit == "pipeline" and other == "store" and not _within(target, "hookline.store.contract"):
        yield Violation(Rule.CONTRACT, line, target)
    for one, another in (("sqlite", "postgres"), ("postgres", "sqlite")):
        if _within(module, f"hookline.store.{one}") and _within(target, f"hookline.store.{another}"):
            yield Violation(Rule.STORES, line, target)
    if unit in UNITS and unit != other:
        sideways = UNITS[unit] == UNITS[other] and LAYERS[UNITS[unit]] & FREE
        if UNITS[other] >= UNITS[unit] and not sideways:
            yield Violation(Rule.DIRECTION, line, target)


def _part_import(module: str, line: int, target: str) -> Iterator[Violation]:
    own, others = _part_of(module), _part_of(target)
    if own is None or others is None or own == others:
        return
    if own not in PARTS or others not in PARTS or PARTS[others] >= PARTS[own]:
        yield Violation(Rule.PIPELINE, line, target)


def _part_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[2] if len(parts) > 2 else None


def _names(module: str, tree: ast.AST) -> Iterator[Violation]:
    unit = unit_of(module)
    meanings = _meanings(tree)
    uses = [(line, name) for line, name in imported(tree) if "." in name]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            uses.append((node.lineno, _dotted(node, meanings)))
        elif isinstance(node, ast.Name):
            if node.id in CODE_FROM_TEXT:
                yield Violation(Rule.UNSAFE, node.lineno, node.id)
            if node.id in EFFECT_BUILTINS and unit == "rules":
                yield Violation(Rule.PURE, node.lineno, node.id)
        elif (
            isinstance(node, ast.Call)
            and _dotted(node.func, meanings) == "random.Random"
            and unit not in BUILDING
        ):
            yield Violation(Rule.CHANCE, node.lineno, "random.Random(…)")
        if isinstance(node, ast.Call):
            for given in node.keywords:
                is_off = isinstance(given.value, ast.Constant) and given.arg in UNSAFE_ARGUMENTS
                if is_off and given.value.value is UNSAFE_ARGUMENTS[given.arg]:  # type: ignore[attr-defined,index]
                    yield Violation(Rule.UNSAFE, node.lineno, f"{given.arg}={given.value.value}")  # type: ignore[attr-defined]
        if (
            isinstance(node, ast.Attribute)
            and node.attr == "check_hostname"
            and isinstance(node.ctx, ast.Store)
        ):
            yield Violation(Rule.UNSAFE, node.lineno, "check_hostname = …")
    for line, name in uses:
        first, _, last = name.rpartition(".")
        if name in CLOCK_READS and module not in CLOCKS:
            yield Violation(Rule.CLOCK, line, name)
        if name in CHANCE or (first == "random" and last != "Random"):
            yield Violation(Rule.CHANCE, line, name)
        if first == "random" and unit in SECRET_MAKERS:
            yield Violation(Rule.UNSAFE, line, name)
        if module != "hookline.pipeline.sending.net" and (
            last in DIALLING or (_is_effect_of_socket(name) and unit not in BINDING)
        ):
            yield Violation(Rule.NETWORK, line, name)
        if name in UNSAFE_NAMES and module not in ON_DEMAND:
            yield Violation(Rule.UNSAFE, line, name)


def _is_effect_of_socket(name: str) -> bool:
    first, _, last = name.rpartition(".")
    return first == "socket" and not last.isupper() and last not in SOCKET_NAMES_OF_NO_EFFECT


def _meanings(tree: ast.AST) -> dict[str, str]:
    """What each imported name stands for."""
    meanings: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                meanings[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                meanings[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return meanings


def _dotted(node: ast.AST, meanings: dict[str, str]) -> str:
    """`a.b.c` with `a` replaced by what it was imported as; other expressions become `?`."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, meanings)}.{node.attr}"
    if isinstance(node, ast.Name):
        return meanings.get(node.id, "?")
    return "?"
