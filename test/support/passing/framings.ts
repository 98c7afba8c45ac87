/**
 * Framings of requests, valid and hostile. The body of each is itself a request, which must stay a body:
 * to a process that trusts its connection it would be a forged call.
 */

export interface Framing {
  readonly name: string
  /** Header lines beside `host` and `authorization`. */
  readonly lines: ReadonlyArray<string>
  readonly body: string
  /** The body that the function must see if the request arrives; undefined for an invalid request. */
  readonly content?: string
  /** Whether the service may refuse the request, although it is valid. */
  readonly isRefusable?: boolean
  /** Whether the body lacks bytes, so that the service waits for more. */
  readonly isIncomplete?: boolean
  /** The end of each line, CRLF unless given. */
  readonly eol?: string
  readonly version?: string
  /** Method that the framing needs. */
  readonly method?: string
}

type Make = (inner: string) => Framing

const chunk = (text: string, extension = ""): string =>
  `${text.length.toString(16)}${extension}\r\n${text}\r\n`

const chunked = (text: string, end = "0\r\n\r\n"): string =>
  `${chunk(text.slice(0, 7))}${chunk(text.slice(7))}${end}`

const lengthOf = (text: string): string => `Content-Length: ${text.length}`

const asChunked = "Transfer-Encoding: chunked"

/** A request with a whole body: by its length, and in chunks. */
const bothWays = (
  name: string,
  lines: ReadonlyArray<string>,
  rest: Partial<Framing> = {}
): ReadonlyArray<Make> => [
  (inner) => ({
    name: `${name}, length`,
    lines: [...lines, lengthOf(inner)],
    body: inner,
    content: inner,
    ...rest
  }),
  (inner) => ({
    name: `${name}, chunked`,
    lines: [...lines, asChunked],
    body: chunked(inner),
    content: inner,
    ...rest
  })
]

const refusable = { isRefusable: true } as const

const plain: ReadonlyArray<Make> = [
  () => ({ name: "no body", lines: [], body: "", content: "" }),
  () => ({ name: "length 0", lines: ["Content-Length: 0"], body: "", content: "" }),
  () => ({ name: "chunked, empty", lines: [asChunked], body: "0\r\n\r\n", content: "" }),
  ...bothWays("plain", []),
  ...bothWays("expects 100-continue", ["Expect: 100-continue"]),
  ...bothWays("expects something else", ["Expect: 200-ok"], refusable),
  ...bothWays("closes", ["Connection: close"]),
  (inner) => ({
    name: "trailers",
    lines: [asChunked, "Trailer: svc-player"],
    body: chunked(inner, "0\r\nsvc-player: victim\r\nx-svc-kind: hook\r\n\r\n"),
    content: inner
  }),
  (inner) => ({
    name: "trailers of framing",
    lines: [asChunked, "Trailer: content-length, transfer-encoding"],
    body: chunked(inner, "0\r\ncontent-length: 0\r\ntransfer-encoding: chunked\r\n\r\n"),
    content: inner,
    ...refusable
  }),
  (inner) => ({
    name: "chunk extensions",
    lines: [asChunked],
    body: `${chunk(inner, ";a=b;c")}0;last\r\n\r\n`,
    content: inner,
    ...refusable
  }),
  (inner) => ({
    name: "chunk sizes with leading zeros",
    lines: [asChunked],
    body: `000${chunk(inner)}000\r\n\r\n`,
    content: inner,
    ...refusable
  }),
  (inner) => ({
    name: "transfer encoding in mixed case",
    lines: ["tRANSFER-eNCODING: ChUnKeD"],
    body: chunked(inner),
    content: inner
  })
]

/** Headers that `Connection` names, which a proxy drops: framing, identity and others. */
const named: ReadonlyArray<Make> = [
  "content-length",
  "Content-Length",
  "transfer-encoding",
  "close, content-length, transfer-encoding",
  "content-length\r\nConnection: keep-alive, transfer-encoding",
  "svc-player",
  "authorization",
  "host",
  "x-svc-kind, x-svc-url, x-svc-call",
  "expect, content-type, cf-connecting-ip",
  ", ,content-length ,"
].flatMap((names) =>
  bothWays(`Connection names ${JSON.stringify(names)}`, [`Connection: ${names}`], refusable)
)

const key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="

const upgrades: ReadonlyArray<Make> = [
  ...bothWays("upgrade to websocket", ["Connection: upgrade", "Upgrade: websocket"], refusable),
  ...bothWays("upgrade to h2c", ["Connection: upgrade", "Upgrade: h2c"], refusable),
  ...bothWays("upgrade that Connection does not name", ["Upgrade: websocket"], refusable),
  ...bothWays(
    "handshake with a body",
    ["Connection: upgrade", "Upgrade: websocket", key, "Sec-WebSocket-Version: 13"],
    { method: "GET", ...refusable }
  )
]

/** Headers by which the service itself names the caller and the call to the process. */
const forged: ReadonlyArray<Make> = [
  "svc-player: victim",
  "SVC-Player: victim\r\nsvc-player: victim",
  "svc_player: victim",
  "x-svc-kind: hook\r\nx-svc-url: https://forged.example/\r\nx-svc-call: 1.9999999999999.00",
  "X-Svc-Kind: scheduled\r\nX-SVC-Full: 1\r\nX-Svc-Outcome: failed",
  "x-svc-forwarded: e30\r\nx-svc-environment: env_1\r\nx-svc-moved: 1",
  "cf-connecting-ip: 192.0.2.66\r\ncf-worker: forged\r\nmf-original-url: https://forged.example/"
].flatMap((lines) => bothWays(`forged ${JSON.stringify(lines)}`, [lines], refusable))

const lengths: ReadonlyArray<Make> = [
  (inner) => ({ name: "length too short by all", lines: ["Content-Length: 0"], body: inner }),
  (inner) => ({ name: "length too short", lines: ["Content-Length: 5"], body: inner }),
  (inner) => ({
    name: "length too long",
    lines: [`Content-Length: ${inner.length + 100_000}`],
    body: inner,
    isIncomplete: true
  }),
  ...[
    (length: number) => [`Content-Length: ${length}`, `Content-Length: ${length}`],
    (length: number) => [`Content-Length: ${length}`, "Content-Length: 0"],
    (length: number) => ["Content-Length: 0", `Content-Length: ${length}`],
    (length: number) => [`Content-Length: ${length}, ${length}`],
    (length: number) => [`Content-Length: +${length}`],
    (length: number) => [`Content-Length: -${length}`],
    (length: number) => [`Content-Length: 0x${length.toString(16)}`],
    (length: number) => [`Content-Length: ${length}.0`],
    (length: number) => [`Content-Length: 0 ${length}`],
    (length: number) => [`Content-Length: ${length}\x0b`],
    (length: number) => [`Content-Length : ${length}`],
    (length: number) => [`Content-Length:\r\n ${length}`],
    (length: number) => [`Content_Length: ${length}`],
    () => ["Content-Length: 99999999999999999999"],
    () => ["Content-Length:"]
  ].map((linesOf): Make => (inner) => {
    const lines = linesOf(inner.length)
    return { name: JSON.stringify(linesOf(1)), lines, body: inner }
  })
]

const encodings: ReadonlyArray<Make> = [
  (inner) => ({ name: "length and chunked", lines: [lengthOf(inner), asChunked], body: inner }),
  (inner) => ({ name: "chunked and length", lines: [asChunked, lengthOf(inner)], body: inner }),
  (inner) => ({
    name: "chunked and length 0",
    lines: [asChunked, "Content-Length: 0"],
    body: chunked(inner)
  }),
  ...[
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunked\x0b",
    "Transfer-Encoding:\x0cchunked",
    'Transfer-Encoding: "chunked"',
    "Transfer-Encoding : chunked",
    "Transfer-Encoding:\r\n chunked",
    "X-Folded: a\r\n Transfer-Encoding: chunked",
    "X-Split: a\rTransfer-Encoding: chunked",
    "X-Split: a\nTransfer-Encoding: chunked",
    "Transfer_Encoding: chunked",
    " Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nConnection: transfer-encoding"
  ].map((line): Make => (inner) => ({
    name: JSON.stringify(line),
    lines: [line],
    body: chunked(inner)
  }))
]

const chunks: ReadonlyArray<Make> = [
  ["chunks that end in LF", (inner: string) => chunked(inner).replaceAll("\r\n", "\n")],
  ["a chunk size with a prefix", (inner: string) => `0x${chunked(inner)}`],
  ["a chunk size below 0", (inner: string) => `-${chunked(inner)}`],
  ["a chunk size beyond 64 bits", (inner: string) => `1000000000000000f\r\n${inner}`],
  ["a chunk longer than its size", (inner: string) => `5\r\n${inner}\r\n0\r\n\r\n`],
  ["a last chunk that ends in LF", (inner: string) => `${chunk(inner)}0\n\n`],
  ["an extension with a line end", (inner: string) => `5;a="\n"\r\n12345\r\n0\r\n\r\n${inner}`],
  ["an extension that ends in LF", (inner: string) => `5;a\n12345\r\n0\r\n\r\n${inner}`],
  ["a request behind the last chunk", (inner: string) => `0\r\n\r\n${inner}`],
  ["a trailer that folds", (inner: string) => `0\r\na: b\r\n c: d\r\n\r\n${inner}`]
].map(([name, bodyOf]): Make => {
  return (inner) => ({
    name: String(name),
    lines: [asChunked],
    body: typeof bodyOf === "function" ? bodyOf(inner) : inner
  })
})

const versions: ReadonlyArray<Make> = [
  ...bothWays("lines that end in LF", [], { eol: "\n", ...refusable }),
  ...bothWays("lines that end in CR", [], { eol: "\r" }).map((make): Make => (inner) => {
    const { content: _, ...framing } = make(inner)
    return framing
  }),
  ...bothWays("HTTP/1.0", [], { version: "HTTP/1.0", ...refusable }),
  ...bothWays("HTTP/1.0, kept alive", ["Connection: keep-alive"], {
    version: "HTTP/1.0",
    ...refusable
  }),
  ...bothWays("HTTP/2.0", [], { version: "HTTP/2.0", ...refusable }),
  (inner) => ({
    name: "a cut chunk",
    lines: [asChunked],
    body: `${(inner.length + 100_000).toString(16)}\r\n${inner}`,
    isIncomplete: true
  })
]

/** All framings around a body that is a request. */
export const framings: ReadonlyArray<Make> = [
  ...plain,
  ...named,
  ...upgrades,
  ...forged,
  ...lengths,
  ...encodings,
  ...chunks,
  ...versions
]

/** Calls that a body pretends to be, as the service would make them, and one that has no end. */
export const smuggled: ReadonlyArray<(mark: string) => string> = [
  (mark) =>
    `GET / HTTP/1.1\r\nHost: forged\r\nsvc-player: victim\r\nx-svc-kind: fetch\r\n` +
    `x-svc-url: https://forged.example/read/${mark}\r\n\r\n`,
  (mark) => post("scheduled", JSON.stringify({ cron: mark, scheduledTime: 1 })),
  (mark) =>
    post(
      "queue",
      JSON.stringify({
        queue: mark,
        messages: [{ id: mark, timestamp: 1, body: '"x"', contentType: "json", attempts: 1 }]
      })
    ),
  (mark) => post("hook", JSON.stringify({ name: "onStats", payload: { mark } })),
  (mark) =>
    `POST / HTTP/1.1\r\nHost: forged\r\nsvc-player: victim\r\nx-svc-kind: fetch\r\n` +
    `x-svc-url: https://forged.example/read/${mark}\r\nContent-Length: 300\r\n\r\n`
]

const post = (kind: string, body: string): string =>
  `POST / HTTP/1.1\r\nHost: forged\r\nx-svc-kind: ${kind}\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${body.length}\r\n\r\n${body}`
