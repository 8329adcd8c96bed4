"""The pytest plugin: pytest finds it by its entry point and loads it in every run.

So it imports neither a server nor a receiver. `-p no:hookline` turns it off.
"""

from hookline.testing.fixtures import hookline_server as hookline_server
from hookline.testing.fixtures import webhook_receiver as webhook_receiver
