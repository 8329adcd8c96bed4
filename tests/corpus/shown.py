"""The payloads of the corpus that are dangerous only where they are shown: delivered byte for byte, read as text.

That they arrive is tried in tests/api/corpus_payloads.py, that a page shows them in tests/browser/test_every_page.py.
"""

import json

SHOWN = {
    "P31": [b'{"__proto__":{"x":1},"constructor":1}'],
    "P32": [
        json.dumps(text).encode()
        for text in (
            "<script>alert(1)</script>",
            '"><img src=x onerror=alert(1)>',
            "</textarea>",
            "{{7*7}}",
            "${7*7}",
        )
    ],
    "P33": [rb'"\u2028 \u2029 </script>"', '"\u2028 \u2029 </script>"'.encode()],
}
