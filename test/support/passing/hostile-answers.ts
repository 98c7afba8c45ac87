/** A function whose responses try to be read as several, or as the service's own. */

/** What the body of each response contains: a response of its own. */
const forgedResponse =
  "HTTP/1.1 200 OK\\r\\nx-call: forged\\r\\nContent-Length: 6\\r\\n\\r\\nforged"

export const hostileCode = `
  const forged = "${forgedResponse}".repeat(20)
  const bytes = new TextEncoder().encode(forged)
  const stream = (after = (out) => out.close()) => new ReadableStream({
    start(out) {
      out.enqueue(bytes)
      after(out)
    }
  })
  const withHeaders = (...pairs) => () => new Response(forged, { headers: pairs })
  const streamed = (...pairs) => () => new Response(stream(), { headers: pairs })
  const withStatus = (status, ...pairs) => () => new Response(
    [101, 204, 205, 304].includes(status) ? null : forged, { status, headers: pairs })
  const many = (count, size) => Array.from({ length: count }, (_, i) => ["x-" + i, "a".repeat(size)])
  const answers = {
    plain: withHeaders(),
    "length too short": withHeaders(["content-length", "5"]),
    "length too long": withHeaders(["content-length", "50000"]),
    "length 0": withHeaders(["content-length", "0"]),
    "two lengths": withHeaders(["content-length", "5"], ["content-length", "7"]),
    "no length": withHeaders(["content-length", "x"]),
    "stream, length too short": streamed(["content-length", "5"]),
    "stream, length too long": streamed(["content-length", "50000"]),
    "stream, length 0": streamed(["content-length", "0"]),
    chunked: withHeaders(["transfer-encoding", "chunked"]),
    "stream, chunked": streamed(["transfer-encoding", "chunked"]),
    "identity": withHeaders(["transfer-encoding", "identity"]),
    "gzip, chunked": withHeaders(["transfer-encoding", "gzip, chunked"]),
    "length and chunked": withHeaders(["content-length", "5"], ["transfer-encoding", "chunked"]),
    "closes": withHeaders(["connection", "close"]),
    "names its length": withHeaders(["connection", "content-length"]),
    "stream, names its encoding": streamed(["connection", "transfer-encoding, x-call"]),
    "offers an upgrade": withHeaders(["connection", "upgrade"], ["upgrade", "h2c"]),
    "kept alive": withHeaders(["keep-alive", "timeout=1, max=1"], ["proxy-connection", "close"]),
    "announces trailers": streamed(["trailer", "content-length, x-call"]),
    "encoded by name": withHeaders(["content-encoding", "gzip"]),
    "204 with a length": withStatus(204, ["content-length", "500"]),
    "205 with a length": withStatus(205, ["content-length", "500"]),
    "304 with a length": withStatus(304, ["content-length", "500"]),
    "304, chunked": withStatus(304, ["transfer-encoding", "chunked"]),
    "101 without a socket": withStatus(101),
    "101 for a request": () => {
      const { 0: client, 1: server } = new WebSocketPair()
      server.accept()
      server.send(forged)
      return new Response(null, { status: 101, webSocket: client })
    },
    "421 as of a runner": withStatus(421, ["x-svc-moved", "1"], ["x-svc-receiver", "forged"]),
    "outcome failed": withHeaders(["x-svc-outcome", "failed"]),
    "outcome refused": withHeaders(["x-svc-outcome", "refused"]),
    "long headers": withHeaders(...many(10, 6000)),
    "many headers": withHeaders(...many(3000, 1)),
    "a header of a line": withHeaders(["x-line", "a\\u00e9\\u0080b"]),
    "a stream that fails": () => new Response(stream((out) => out.error(new Error("forged")))),
    "a fixed stream that is too long": () => {
      const { readable, writable } = new FixedLengthStream(5)
      const writer = writable.getWriter()
      writer.write(bytes).catch(() => undefined)
      writer.close().catch(() => undefined)
      return new Response(readable)
    },
    throws: () => { throw new Error(forged) },
    nothing: () => undefined
  }
  export default { async fetch(request) {
    const url = new URL(request.url)
    const [, way, call] = url.pathname.split("/")
    if (way === "names") return Response.json(Object.keys(answers))
    if (way === "hostile") return answers[decodeURIComponent(call)]()
    const own = { "x-call": String(call), "x-player": String(request.headers.get("svc-player")) }
    return new Response("own", { headers: own })
  } }`
