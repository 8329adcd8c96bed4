"""Leads requests to the views."""

from django.urls import path

from orders.views import parcels, place, receive

urlpatterns = [path("orders", place), path("webhooks", receive), path("parcels", parcels)]
