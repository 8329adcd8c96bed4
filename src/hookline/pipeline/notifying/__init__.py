"""Tells people: by mail, by chat and by webhook."""
