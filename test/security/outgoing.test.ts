/**
 * Server-side request forgery (API7): the service opens no connection to a private address, however a URL
 * writes it or a name resolves to it. A server on this machine counts connections.
 */
import { createServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { decodeConfig } from "#rpc/config-document/document"
import type { Resolve } from "#server/platform/name-resolution"
import { checkUrl, Outgoing } from "#server/platform/outgoing"

/** A server on every IPv4 address of this machine that counts its connections. */
const canary = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly connections: () => number; close: () => void }>(
    (resume) => {
      let connections = 0
      const server = createServer((socket) => {
        connections += 1
        socket.on("error", () => undefined)
        socket.end("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ntrue")
      })
      server.listen(0, "0.0.0.0", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(
          Effect.succeed({ port, connections: () => connections, close: () => void server.close() })
        )
      })
    }
  ),
  ({ close }) => Effect.sync(close)
)

/** Spellings of addresses of this machine, of its network and of a cloud's metadata service. */
const hosts = [
  "127.0.0.1",
  "127.0.0.2",
  "127.1",
  "127.0.1",
  "127.000.000.001",
  "0177.0.0.1",
  "0177.1",
  "0x7f.0.0.1",
  "0x7f.1",
  "0x7f000001",
  "0X7F000001",
  "2130706433",
  "017700000001",
  "127.0.0.1.",
  "0",
  "0.0.0.0",
  "0x0",
  "%31%32%37.0.0.1",
  "127%2e0.0.1",
  "①②⑦.⓪.⓪.①",
  "１２７.0.0.1",
  "127。0。0。1",
  "127｡0｡0｡1",
  "localhost",
  "LOCALHOST",
  "localhost.",
  "ｌocalhost",
  "10.0.0.1",
  "10.1",
  "167772161",
  "0xa.1",
  "172.16.0.1",
  "172.31.255.255",
  "172.16.1",
  "192.168.0.1",
  "192.168.257",
  "0xc0.0xa8.0.1",
  "169.254.169.254",
  "2852039166",
  "0xA9FEA9FE",
  "0251.0376.0251.0376",
  "169.254.43518",
  "100.100.100.200",
  "100.64.0.1",
  "192.0.0.192",
  "198.18.0.1",
  "224.0.0.1",
  "240.0.0.1",
  "255.255.255.255",
  "[::1]",
  "[::]",
  "[0:0:0:0:0:0:0:1]",
  "[0000::0001]",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[0:0:0:0:0:ffff:127.0.0.1]",
  "[::ffff:10.0.0.1]",
  "[::ffff:169.254.169.254]",
  "[::127.0.0.1]",
  "[::7f00:1]",
  "[64:ff9b::127.0.0.1]",
  "[64:ff9b::7f00:1]",
  "[64:ff9b::a9fe:a9fe]",
  "[64:ff9b:1::7f00:1]",
  "[2002:7f00:1::]",
  "[2002:a9fe:a9fe::1]",
  "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
  "[fe80::1]",
  "[fe80::1%25lo]",
  "[fe80::1%25eth0]",
  "[fec0::1]",
  "[fc00::1]",
  "[fd00:ec2::254]",
  "[fd00::1]",
  "[ff02::1]",
  "[100::1]",
  "[2001:db8::1]",
  "[5f00::1]"
]

/** URLs that hide a private host or its scheme. */
const misleadingUrls = (port: number) => [
  `https://example.com@127.0.0.1:${port}/`,
  `https://example.com:443@127.0.0.1:${port}/`,
  `https://127.0.0.1:${port}@example.com/`,
  `https://:@127.0.0.1:${port}/`,
  `https:\\\\127.0.0.1:${port}\\`,
  `https:127.0.0.1:${port}`,
  `https:/127.0.0.1:${port}/`,
  ` https://127.0.0.1:${port}/`,
  `https://127.0.0.1\t:${port}/`,
  `//127.0.0.1:${port}/`,
  `http://127.0.0.1:${port}/`,
  `http://localhost:${port}/`,
  `ftp://127.0.0.1:${port}/`,
  `ws://127.0.0.1:${port}/`,
  `gopher://127.0.0.1:${port}/_GET`,
  `file:///etc/passwd`,
  `data:application/json,true`,
  `javascript:true`,
  `unix:/var/run/docker.sock`,
  `blob:https://127.0.0.1:${port}/`
]

/** Resolutions with at least one private address. */
const resolutions = [
  ["127.0.0.1"],
  ["::1"],
  ["0.0.0.0"],
  ["10.0.0.1"],
  ["169.254.169.254"],
  ["::ffff:127.0.0.1"],
  ["64:ff9b::7f00:1"],
  ["2002:7f00:1::"],
  ["fd00:ec2::254"],
  ["8.8.8.8", "127.0.0.1"],
  ["127.0.0.1", "8.8.8.8"],
  ["2606:4700::1", "::1"]
]

const post = (url: string, resolve: Resolve) =>
  Effect.flatMap(Outgoing, (outgoing) =>
    outgoing.post({ url, body: "{}", headers: {}, timeoutMillis: 1000, allowLoopback: false })
  ).pipe(Effect.provide(Outgoing.layerWith(resolve), { local: true }), Effect.exit)

const toThisMachine: Resolve = (_, answer) => answer(null, [{ address: "127.0.0.1", family: 4 }])

describe("outgoing requests (API7)", () => {
  it.live("never connects to a private address, however the URL writes it", () =>
    Effect.gen(function* () {
      const { connections, port } = yield* canary
      const urls = [...hosts.map((host) => `https://${host}:${port}/`), ...misleadingUrls(port)]
      assert.isAtLeast(new Set(urls).size, 80)
      for (const url of urls) {
        const exit = yield* post(url, toThisMachine)
        assert.strictEqual(exit._tag, "Failure", url)
      }
      assert.strictEqual(connections(), 0)
    })
  )

  it.live(
    "never connects to a name that resolves to a private address, also beside public ones",
    () =>
      Effect.gen(function* () {
        const { connections, port } = yield* canary
        for (const addresses of resolutions) {
          const resolve: Resolve = (_, answer) =>
            answer(
              null,
              addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }))
            )
          const exit = yield* post(`https://hook.example:${port}/`, resolve)
          assert.strictEqual(exit._tag, "Failure", addresses.join())
        }
        assert.strictEqual(connections(), 0)
      })
  )

  it.effect("refuses a misleading webhook URL in the config or at the request", () =>
    Effect.sync(() => {
      for (const url of misleadingUrls(80)) {
        const document = { integrity: { stats: { webhook: { url } } } }
        const accepted = Result.isSuccess(decodeConfig(document))
        // The request checks the URL again, so either refusal suffices.
        assert.isFalse(accepted && Result.isSuccess(checkUrl(url, false)), url)
      }
    })
  )
})
