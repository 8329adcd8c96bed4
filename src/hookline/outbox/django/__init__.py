"""Makes the outbox table with the migrations of a Django project: add `hookline.outbox.django` to INSTALLED_APPS."""
