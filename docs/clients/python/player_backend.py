"""A client of the player backend in one file: sign-in, the socket, rooms and reconnection.

It needs Python 3.9 and `websockets` (10 or newer). Run it as a program to play one message in a room of its own:
    python3 player_backend.py http://localhost:8080 pk_...
"""
import asyncio
import http.client
import itertools
import json
import random
import secrets
import sys
import urllib.error
import urllib.request

import websockets

STAY_CLOSED = {1003, 4003, 4004}  # a fault of this client, forbidden, replaced by a newer connection
REFRESH = {4001, 4002}  # the access token is not valid any more


class ServiceError(Exception):
    """`code` says what happened. Match it, never the message."""

    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code, self.details = error["code"], error.get("details")


class Client:
    def __init__(self, base_url, key, on_event):
        self.base_url, self.key, self.on_event = base_url, key, on_event
        self.session = None  # keep it in a store of your own to return as the same player
        self.room_id = None
        self._socket, self._waiting, self._ids = None, {}, itertools.count(1)
        self._online, self._tasks = asyncio.Event(), set()

    async def request(self, method, path, body=None, token=None, idempotency_key=None):
        """Calls an endpoint and returns its body."""
        headers = {"X-Svc-Key": self.key, "Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if idempotency_key:
            headers["Idempotency-Key"] = idempotency_key
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base_url + path, data, headers, method=method)

        def send():
            try:
                with urllib.request.urlopen(request, timeout=10) as response:
                    return json.loads(response.read() or b"null")
            except urllib.error.HTTPError as failed:
                raise ServiceError(json.loads(failed.read())["error"]) from None

        return await asyncio.to_thread(send)

    async def sign_in(self, display_name):
        self.session = await self.request("POST", "/v1/auth/guest", {"displayName": display_name})

    async def refresh(self):
        """Takes new tokens. A refresh token is valid once: store the new one before anything else.

        A response may be lost. Only the same token with the same key gets it again, so store both before you send.
        """
        key = self.session.setdefault("refreshKey", secrets.token_urlsafe(24))
        body = {"refreshToken": self.session["refreshToken"]}
        while True:
            try:
                self.session = await self.request("POST", "/v1/auth/refresh", body, idempotency_key=key)
                return
            except (OSError, http.client.HTTPException):
                await asyncio.sleep(random.random())

    async def run(self):
        """Keeps a socket open until the service says that it shall stay closed."""
        delay = 0.5
        while True:
            code = await self._connect()
            if code in STAY_CLOSED:
                return code
            if code in REFRESH:
                await self.refresh()
            if self._online.is_set():
                delay = 0.5
            self._online.clear()
            for reply in self._waiting.values():
                reply.cancel()
            self._waiting.clear()
            # A draining process (1012) keeps the seat: return within a second. Else wait longer each time.
            await asyncio.sleep(random.random() * (1 if code == 1012 else delay))
            delay = min(delay * 2, 15)

    async def _connect(self):
        address = self.base_url.replace("http", "ws", 1) + "/v1/realtime"
        try:
            async with websockets.connect(address, max_size=2**21) as socket:
                self._socket = socket
                await self._send({"t": "auth", "key": self.key, "token": self.session["accessToken"]})
                async for text in socket:
                    self._receive(json.loads(text))
                return socket.close_code
        except websockets.ConnectionClosed as closed:
            return closed.code
        except OSError:
            return 1006

    def _receive(self, frame):
        if frame["t"] == "reply":
            reply = self._waiting.pop(frame["rid"], None)
            if reply and not reply.done():
                reply.set_result(frame)
            return
        if frame["t"] == "welcome":
            self._online.set()
            if any(seat["roomId"] == self.room_id for seat in frame["rooms"]):
                self._later(self.ask("resume", roomId=self.room_id))
        elif frame["t"] == "room_joined":
            self.room_id = frame["room"]["id"]  # the whole room: it replaces what you had
        elif frame["t"] == "warn" and frame["code"] == "token_expiring":
            self._later(self._renew())
        self.on_event(frame)  # ignore types and fields that you do not know: newer services have more

    def _later(self, work):
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _renew(self):
        await self.refresh()
        await self._send({"t": "auth", "token": self.session["accessToken"]})

    async def _send(self, frame):
        await self._socket.send(json.dumps(frame))

    async def ask(self, frame_type, **fields):
        """Sends a frame and returns the data of its reply."""
        await self._online.wait()
        rid = str(next(self._ids))
        self._waiting[rid] = asyncio.get_running_loop().create_future()
        await self._send({"t": frame_type, "rid": rid, **fields})
        reply = await asyncio.wait_for(self._waiting[rid], 10)
        if not reply["ok"]:
            raise ServiceError(reply["error"])
        return reply["data"]

    async def close(self):
        if self._socket:
            await self._socket.close()


async def main(base_url, key):
    heard = asyncio.Queue()
    ada, bob = Client(base_url, key, lambda event: None), Client(base_url, key, heard.put_nowait)
    await asyncio.gather(ada.sign_in("Ada"), bob.sign_in("Bob"))
    sockets = [asyncio.create_task(client.run()) for client in (ada, bob)]
    room = await ada.ask("create", mode="default")
    await bob.ask("join", code=room["code"])
    await bob.close()  # a lost connection: the client returns to its seat
    event = {"t": ""}
    while event["t"] != "room_joined" or not event["resumed"]:
        event = await heard.get()
    await ada.ask("send", type="move", data={"x": 1})
    while event["t"] != "message":
        event = await heard.get()
    print(json.dumps({"type": event["type"], "data": event["data"]}))
    for socket in sockets:
        socket.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
