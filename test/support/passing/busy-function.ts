/** A function whose calls are under way for a while in every direction, for clients that go away. */

/** Answers name the call and its player in headers. Sockets say hello, echo, and push more than a client reads. */
export const busyCode = `
  const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis))
  const piece = new Uint8Array(16384)
  const streamOf = (pieces, millis) => new ReadableStream({
    async pull(out) {
      if (pieces-- === 0) return out.close()
      if (millis > 0) await pause(millis)
      out.enqueue(piece)
    }
  })
  const connect = (way) => {
    const { 0: client, 1: server } = new WebSocketPair()
    server.accept()
    server.send("hello")
    server.addEventListener("message", ({ data }) => server.send(data))
    if (way === "push") for (let i = 0; i < 40; i += 1) server.send(piece)
    return new Response(null, { status: 101, webSocket: client })
  }
  const bodies = {
    call: () => "ok",
    slow: async () => (await pause(40), "ok"),
    early: () => "ok",
    upload: async (request) => String((await request.arrayBuffer()).byteLength),
    back: (request) => request.body,
    drip: () => streamOf(12, 8),
    flood: () => streamOf(120, 0),
    secret: (_, env) => env.ROUND
  }
  export default { async fetch(request, env) {
    const [, way, call] = new URL(request.url).pathname.split("/")
    if (request.headers.get("upgrade") === "websocket") {
      return way === "refused" ? new Response("no", { status: 403 }) : connect(way)
    }
    const headers = { "x-call": String(call), "x-player": String(request.headers.get("svc-player")) }
    return new Response(await bodies[way](request, env), { headers })
  } }`
