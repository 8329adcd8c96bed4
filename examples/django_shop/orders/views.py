"""Takes orders, and receives the webhooks about them."""

import json

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.forms import modelform_factory
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from hookline import outbox
from hookline.receiver import ProcessOnce, VerificationError, verify
from orders.models import Item, Order, Parcel

OrderForm = modelform_factory(Order, fields=["item", "quantity"])
once = ProcessOnce()


@require_POST
def place(request: HttpRequest) -> JsonResponse:
    form = OrderForm(request.POST)
    if not form.is_valid():
        return JsonResponse({"errors": form.errors}, status=422)
    try:
        with transaction.atomic():
            order = form.save()
            # The event becomes part of this transaction: it is sent exactly if the order is committed.
            event = {"order": order.pk, "item": order.item.name, "quantity": order.quantity}
            outbox.publish(connection, "order.placed", event)
            Item.objects.filter(pk=order.item.pk).update(stock=F("stock") - order.quantity)
    except IntegrityError:  # the stock went below zero: there is no order, and no event
        return JsonResponse({"errors": {"quantity": ["sold out"]}}, status=409)
    return JsonResponse({"order": order.pk}, status=201)


@csrf_exempt  # a webhook has a signature instead
@require_POST
def receive(request: HttpRequest) -> HttpResponse:
    try:
        event = verify(settings.WEBHOOK_SECRET, request.headers, request.body, style="standard")
    except VerificationError as error:
        return JsonResponse({"error": error.reason}, status=401)
    order = json.loads(event.body)
    # The mark and the parcel share one transaction: both are kept, or neither. A repeat is answered alike.
    with transaction.atomic():
        if once.mark(connection, event.id):
            contents = f"{order['quantity']} x {order['item']}"
            Parcel.objects.create(order_number=order["order"], contents=contents)
    return HttpResponse(status=204)


def parcels(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"parcels": list(Parcel.objects.values("order_number", "contents"))})
