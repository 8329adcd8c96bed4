"""What people and receivers may write when it would like to be more than text.

A script that runs sets `window.__xss`.
"""

TEXTS = (
    "<script>window.__xss=1</script>",
    '"><img src=x onerror=window.__xss=1>',
    "'-window.__xss=1-'",
    "</textarea></title></script></svg><script>window.__xss=1</script>",
    "{{7*7}} ${7*7} {% set a = 1 %}",
    "javascript:window.__xss=1",
    '<a href="javascript:window.__xss=1" hx-get="/v1/keys" hx-trigger="load">x</a>',
    "<style>*{display:none}</style><meta http-equiv=refresh content=0;url=/keys>",
    "\u202egnp.exe\u202c \u2066\u2069 \u2028 \u2029",
    "e\u0301\u0301\u0301 \U0001f468\u200d\U0001f469\u200d\U0001f467",
)
ALL = " ".join(TEXTS)
HEADERS = {f"x-hostile-{n}": text for n, text in enumerate(TEXTS) if text.isascii()}
PAYLOAD = {**{text: text for text in TEXTS}, "nul": "a\0b", "escape": "\x1b[2J", "__proto__": {"x": 1}}
QUERY = "x=%3Cscript%3Ewindow.__xss=1%3C/script%3E&y='-window.__xss=1-'&z=%7B%7B7*7%7D%7D"
