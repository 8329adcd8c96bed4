"""Runs the FastAPI shop, which is killed between the commit of an order and the next line."""

import os
import signal
import sys

import uvicorn
from sqlalchemy import event
from sqlalchemy.orm import Session


@event.listens_for(Session, "after_commit")
def committed(session: Session) -> None:
    if any(type(each).__name__ == "Order" for each in session.identity_map.values()):
        os.kill(os.getpid(), signal.SIGKILL)


sys.path.insert(0, os.getcwd())  # the shop's folder
uvicorn.run("shop:app", host="127.0.0.1", port=0)
