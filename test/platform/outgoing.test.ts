/**
 * Requests to addresses that developers choose, such as webhooks. No spelling, DNS answer or redirect
 * reaches an internal address (SSRF). A bad or late response is an error.
 */
import type { RequestListener } from "node:http"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Result } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import type { Resolve } from "#server/platform/name-resolution"
import {
  checkUrl,
  guardedLookup,
  mayConnect,
  Outgoing,
  type OutgoingPost,
  type OutgoingRequest
} from "#server/platform/outgoing"
import { certified } from "../support/certificate.ts"
import { startServer } from "../support/local-server.ts"

/** Addresses that are not public, in all notations. */
const hostileAddresses: ReadonlyArray<[what: string, ...addresses: Array<string>]> = [
  ["this network", "0.0.0.0", "0.1.2.3"],
  ["private", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.1.1"],
  ["carrier grade NAT", "100.64.0.1", "100.127.255.254"],
  ["loopback", "127.0.0.1", "127.255.255.255", "::1", "0:0:0:0:0:0:0:1"],
  ["link local", "169.254.169.254", "169.254.170.2", "fe80::1", "febf::1", "fe80::a9fe:a9fe"],
  ["protocol assignments", "192.0.0.1", "192.0.0.170", "2001::1", "2001:20::1", "2001:2::1"],
  ["documentation", "192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
  ["benchmarks", "198.18.0.1", "198.19.255.255"],
  ["6to4 relays", "192.88.99.1", "2002::1", "2002:7f00:1::", "2002:a00:1::1"],
  ["AS112", "192.31.196.1", "192.175.48.1", "2620:4f:8000::1"],
  ["AMT", "192.52.193.1"],
  ["multicast", "224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
  ["reserved", "240.0.0.1", "255.255.255.255", "::", "4000::1", "e000::1"],
  ["unique local", "fc00::1", "fd00::1", "fdff:ffff::1", "fd00:ec2::254"],
  ["site local", "fec0::1"],
  ["IPv4-mapped", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"],
  ["IPv4-compatible", "::127.0.0.1", "::10.0.0.1", "::7f00:1"],
  ["IPv4-translated", "::ffff:0:127.0.0.1"],
  ["NAT64", "64:ff9b::127.0.0.1", "64:ff9b::a00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::1"],
  ["Teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
  ["discard", "100::1"],
  ["segment routing", "5f00::1"],
  [
    "not an address",
    "",
    "localhost",
    "127.1",
    "1.2.3",
    "1.2.3.4.5",
    "0x7f.0.0.1",
    "::g",
    "fe80::1%eth0"
  ]
]

const publicAddresses = [
  "1.1.1.1",
  "8.8.8.8",
  "9.255.255.255",
  "11.0.0.0",
  "100.63.255.255",
  "100.128.0.0",
  "126.255.255.255",
  "128.0.0.0",
  "169.253.255.255",
  "172.15.255.255",
  "172.32.0.0",
  "192.167.255.255",
  "198.17.255.255",
  "223.255.255.255",
  "2606:4700:4700::1111",
  "2a00:1450:4001::200e",
  "2001:4860:4860::8888",
  "::ffff:8.8.8.8"
]

/** URLs whose host is not public, and strings that are not URLs of a server. */
const hostileUrls = [
  "http://example.com/hook",
  "ftp://example.com/",
  "file:///etc/passwd",
  "gopher://example.com/",
  "data:application/json,{}",
  "javascript:alert(1)",
  "https://",
  "//example.com/",
  "example.com",
  "",
  "https://user@example.com/",
  "https://user:pass@example.com/",
  "https://:pass@example.com/",
  "https://127.0.0.1/",
  "https://127.0.0.1:8080/",
  "https://127.1/",
  "https://127.0.1/",
  "https://2130706433/",
  "https://0x7f000001/",
  "https://0x7f.1/",
  "https://0177.0.0.1/",
  "https://017700000001/",
  "https://0/",
  "https://0.0.0.0/",
  "https://10.1/",
  "https://%31%32%37.0.0.1/",
  "https://①②⑦.⓪.⓪.①/",
  "https://127。0。0。1/",
  "https://169.254.169.254/latest/meta-data/",
  "https://2852039166/",
  "https://0xA9FEA9FE/",
  "https://[::1]/",
  "https://[::]/",
  "https://[0:0:0:0:0:0:0:1]/",
  "https://[::ffff:127.0.0.1]/",
  "https://[::ffff:7f00:1]/",
  "https://[::ffff:169.254.169.254]/",
  "https://[::127.0.0.1]/",
  "https://[64:ff9b::127.0.0.1]/",
  "https://[64:ff9b:1::a00:1]/",
  "https://[2002:7f00:1::]/",
  "https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
  "https://[fe80::1]/",
  "https://[fe80::1%25eth0]/",
  "https://[fc00::1]/",
  "https://[fd00:ec2::254]/",
  "https://[ff02::1]/",
  "https://192.168.0.1/",
  "https://172.16.0.1:443/",
  "https://100.64.0.1/",
  "https://198.18.0.1/",
  "https://240.0.0.1/",
  "https://255.255.255.255/",
  // Plain http is for the developer's own machine, where that is allowed.
  "http://localhost:3000/hook",
  "http://127.0.0.1:3000/hook",
  "http://[::1]:3000/hook"
]

const ignored = new AbortController().signal

const post = (options: Partial<OutgoingPost>): OutgoingPost => ({
  url: "https://example.com/",
  body: "{}",
  headers: {},
  timeoutMillis: 2000,
  allowLoopback: false,
  ...options
})

const resolveTo =
  (...addresses: ReadonlyArray<string>): Resolve =>
  (_, answer) =>
    answer(
      null,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }))
    )

const send = (resolve: Resolve, options: Partial<OutgoingPost>) =>
  Effect.flatMap(Outgoing, (outgoing) => outgoing.post(post(options))).pipe(
    Effect.provide(Outgoing.layerWith(resolve), { local: true })
  )

const messageOf = (options: Partial<OutgoingPost>, resolve = resolveTo("127.0.0.1")) =>
  Effect.map(Effect.flip(send(resolve, options)), ({ message }) => message)

/** The message for a late response. A process without time to look for it says so instead: ask again. */
const lateMessageOf = (options: Partial<OutgoingPost>) =>
  Effect.repeat(messageOf({ ...options, timeoutMillis: 50 }), {
    until: (message) => message !== new Unavailable().message
  })

describe("connections", () => {
  it.each(hostileAddresses)("refuses connections to addresses: %s", (_, ...addresses) => {
    for (const address of addresses) assert.isFalse(mayConnect(address, false), address)
  })

  it("allows connections to public addresses", () => {
    for (const address of publicAddresses) assert.isTrue(mayConnect(address, false), address)
  })

  it("allows loopback addresses by an option, and no other private ones", () => {
    for (const address of ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]) {
      assert.isTrue(mayConnect(address, true), address)
    }
    for (const address of ["10.0.0.1", "169.254.169.254", "0.0.0.0", "::", "fe80::1", "fd00::1"]) {
      assert.isFalse(mayConnect(address, true), address)
    }
  })
})

describe("URLs", () => {
  it.each(hostileUrls)("refuses the URL %s", (url) => {
    assert.isTrue(Result.isFailure(checkUrl(url, false)))
  })

  it("accepts URLs of public servers, and by an option those of loopback addresses", () => {
    for (const url of ["https://example.com/hook?x=1", "https://8.8.8.8/", "HTTPS://EXAMPLE.COM"]) {
      assert.isTrue(Result.isSuccess(checkUrl(url, false)), url)
    }
    for (const url of ["http://localhost:1/", "http://127.0.0.1:1/", "http://[::1]:1/"]) {
      assert.isTrue(Result.isSuccess(checkUrl(url, true)), url)
    }
    for (const url of ["http://10.0.0.1/", "http://example.com/", "http://127.0.0.2/"]) {
      assert.isTrue(Result.isFailure(checkUrl(url, true)), url)
    }
  })
})

describe("host names", () => {
  const lookup = (resolve: Resolve, allowLoopback = false) =>
    Effect.callback<unknown>((resume) =>
      guardedLookup(resolve, allowLoopback, ignored)(
        "hook.example",
        { all: true },
        (error, addresses) => resume(Effect.succeed(error?.message ?? addresses))
      )
    )

  it.effect("resolves a host name to its addresses if all are public, otherwise to none", () =>
    Effect.gen(function* () {
      const found = yield* lookup(resolveTo("8.8.8.8", "2606:4700::1"))
      assert.deepStrictEqual(found, [
        { address: "8.8.8.8", family: 4 },
        { address: "2606:4700::1", family: 6 }
      ])
      for (const addresses of [
        ["127.0.0.1"],
        ["8.8.8.8", "10.0.0.1"],
        ["::ffff:10.0.0.1"],
        ["2606:4700::1", "fe80::1"]
      ]) {
        assert.match(String(yield* lookup(resolveTo(...addresses))), /not public/)
      }
      assert.match(String(yield* lookup(resolveTo())), /no address/)
      const failing: Resolve = (_, answer) => answer(new Error("ENOTFOUND"), [])
      assert.match(String(yield* lookup(failing)), /ENOTFOUND/)
    })
  )

  it.live("resolves a host name once, so that the checked address is the connected one", () =>
    Effect.gen(function* () {
      const { port } = yield* startServer((_, response) => response.end("reached"))
      let lookups = 0
      // A second lookup would return another machine.
      const rebinding: Resolve = (name, answer, signal) => {
        lookups += 1
        resolveTo(lookups === 1 ? "127.0.0.1" : "10.0.0.1")(name, answer, signal)
      }
      const url = `http://localhost:${port}/`
      const body = yield* send(rebinding, { url, allowLoopback: true })
      assert.strictEqual(body, "reached")
      assert.strictEqual(lookups, 1)
      // A public name that resolves to a private address.
      const publicUrl = `https://hook.example:${port}/`
      assert.match(yield* messageOf({ url: publicUrl }), /not public/)
    })
  )
})

describe("responses", () => {
  const startHook = Effect.fnUntraced(function* (listener: RequestListener) {
    const { port } = yield* startServer(listener)
    return { url: `http://localhost:${port}/hook`, allowLoopback: true }
  })

  it.live("sends a POST with body and headers, and returns the body of a 2xx response", () =>
    Effect.gen(function* () {
      const received: Array<string> = []
      const target = yield* startHook((request, response) => {
        received.push(`${request.method} ${request.url} ${request.headers["x-extra"]}`)
        request.on("data", (chunk: Buffer) => received.push(chunk.toString()))
        request.on("end", () => response.writeHead(201).end("fine"))
      })
      const headers = { "x-extra": "1" }
      const options = { ...target, body: '{"é":1}', headers }
      assert.strictEqual(yield* send(resolveTo("127.0.0.1"), options), "fine")
      assert.deepStrictEqual(received, ["POST /hook 1", '{"é":1}'])
    })
  )

  it.live("fails an outgoing request on a status other than 2xx, and follows no redirect", () =>
    Effect.gen(function* () {
      let requests = 0
      for (const status of [301, 302, 303, 307, 308, 400, 404, 500, 503]) {
        const target = yield* startHook((request, response) => {
          requests += 1
          response.writeHead(status, { location: `http://${request.headers.host}/elsewhere` }).end()
        })
        assert.match(yield* messageOf(target), new RegExp(`${status}`))
      }
      assert.strictEqual(requests, 9)
    })
  )

  it.live("fails an outgoing request on a response over 64 KiB, late, incomplete or missing", () =>
    Effect.gen(function* () {
      const full = yield* startHook((_, response) => response.end("x".repeat(65_536)))
      assert.lengthOf(yield* send(resolveTo("127.0.0.1"), full), 65_536)
      const large = yield* startHook((_, response) => response.end("x".repeat(65_537)))
      assert.match(yield* messageOf(large), /65536 bytes/)
      const endless = yield* startHook((_, response) => {
        response.on("error", () => undefined)
        const writeNext = () => response.write("x".repeat(16_384), (error) => error ?? writeNext())
        writeNext()
      })
      assert.match(yield* messageOf(endless), /65536 bytes/)
      const silent = yield* startHook(() => undefined)
      assert.match(yield* lateMessageOf(silent), /within 50 ms/)
      const stalling = yield* startHook((_, response) => response.write("{"))
      assert.match(yield* lateMessageOf(stalling), /within 50 ms/)
      const cutting = yield* startHook((request, response) => {
        response.writeHead(200, { "content-length": "9" }).write("{")
        response.on("finish", () => undefined)
        request.socket.end()
      })
      assert.isTrue(Exit.isFailure(yield* Effect.exit(send(resolveTo("127.0.0.1"), cutting))))
      const refusing = yield* Effect.scoped(startHook(() => undefined))
      assert.match(yield* messageOf(refusing), /ECONNREFUSED/)
    })
  )
})

describe("requests to an address of the operator", () => {
  const ask = (options: Partial<OutgoingRequest>) =>
    Effect.flatMap(Outgoing, (outgoing) =>
      outgoing.request({
        purpose: "signIns",
        url: "https://example.com/",
        method: "GET",
        headers: {},
        timeoutMillis: 2000,
        responseMaxBytes: 16,
        targets: "public",
        ...options
      })
    ).pipe(Effect.provide(Outgoing.layerWith(resolveTo("127.0.0.1")), { local: true }))

  it.live("reaches private addresses and returns any status only for an operator's address", () =>
    Effect.gen(function* () {
      const received: Array<string> = []
      const { port } = yield* startServer((request, response) => {
        received.push(`${request.method} ${request.url}`)
        response.writeHead(403, { "content-type": "text/plain" }).end("no")
      })
      const url = `http://127.0.0.1:${port}/who`
      const answer = yield* ask({ url, targets: "anywhere" })
      assert.deepInclude(answer, { status: 403, body: "no" })
      assert.strictEqual(answer.headers["content-type"], "text/plain")
      yield* ask({ url, targets: "loopback" })
      assert.match((yield* Effect.flip(ask({ url }))).message, /not https/)
      const named = yield* Effect.flip(ask({ url: `https://provider.example:${port}/` }))
      assert.match(named.message, /not public/)
      const broken = yield* Effect.flip(ask({ url: "nowhere", targets: "anywhere" }))
      assert.match(broken.message, /not a URL/)
      assert.deepStrictEqual(received, ["GET /who", "GET /who"])
    })
  )

  it.live("fails when the response from an operator's address is over the size limit", () =>
    Effect.gen(function* () {
      const { port } = yield* startServer((_, response) => response.end("x".repeat(17)))
      const url = `http://127.0.0.1:${port}/`
      const error = yield* Effect.flip(ask({ url, targets: "anywhere" }))
      assert.match(error.message, /over 16 bytes/)
    })
  )
})

describe("certificates", () => {
  it.live("checks certificates against the host name of the URL", () =>
    Effect.gen(function* () {
      const { port } = yield* startServer((_, response) => response.end("reached"), certified)
      const targetOf = (name: string) => ({ url: `https://${name}:${port}/`, allowLoopback: true })
      assert.match(yield* messageOf(targetOf("hook.example")), /self-signed/)
      const defaults = getCACertificates("default")
      yield* Effect.acquireRelease(
        Effect.sync(() => setDefaultCACertificates([...defaults, certified.cert])),
        () => Effect.sync(() => setDefaultCACertificates(defaults))
      )
      assert.strictEqual(yield* send(resolveTo("127.0.0.1"), targetOf("hook.example")), "reached")
      assert.match(yield* messageOf(targetOf("other.example")), /altnames/)
      // The certificate is valid, but the address is not public.
      const strict = { ...targetOf("hook.example"), allowLoopback: false }
      assert.match(yield* messageOf(strict), /not public/)
    })
  )
})
