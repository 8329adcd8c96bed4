"""Looks at pages of the dashboard as browsers do: opens their streams and reads until it is ended."""

import argparse
import http.client
import sys
from threading import Thread


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--pages", type=int, required=True)
    asked = parser.parse_args()
    threads = [Thread(target=watch, args=(asked.port,)) for _ in range(asked.pages)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return 0


def watch(port: int) -> None:
    """Read the overview's stream until the server ends it, again and again until it answers no more."""
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("GET", "/live?page=overview")
            answer = connection.getresponse()
            if answer.status != 200:
                return
            while answer.readline():
                pass
        except OSError:
            return
        finally:
            connection.close()


if __name__ == "__main__":
    sys.exit(main())
