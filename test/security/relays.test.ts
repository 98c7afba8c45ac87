/**
 * Threats to relays (spec section 4.4): a real coturn under the configuration that is shipped, asked by
 * coturn's own client with credentials that the service makes. Nothing of it leaves the machine.
 */
import { spawn, spawnSync } from "node:child_process"
import { createSocket } from "node:dgram"
import { isIPv6 } from "node:net"
import { networkInterfaces } from "node:os"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Clock, ConfigProvider, Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { turn } from "#rpc/limits"
import { Settings } from "#server/platform/settings/settings"
import { TurnServers } from "#server/features/peers/frames"

const secret = "shared-with-the-turn-server"
const shipped = fileURLToPath(new URL("../../deploy/turnserver.conf", import.meta.url))

const installed = ["turnserver", "turnutils_uclient"].every(
  (tool) => spawnSync(tool, ["--version"]).error === undefined
)
const hasIPv6 = Object.values(networkInterfaces()).some((each) =>
  each?.some(({ address }) => address === "::1")
)

const freeUdpPort = Effect.callback<number>((resume) => {
  const socket = createSocket("udp4")
  socket.bind(0, "127.0.0.1", () => {
    const { port } = socket.address()
    socket.close(() => resume(Effect.succeed(port)))
  })
})

/** A program's output until it says what it is asked for, or ends by itself. */
const outputUntil = (command: string, args: ReadonlyArray<string>, said: RegExp) =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => spawn(command, args)),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    return yield* Effect.callback<string>((resume) => {
      let output = ""
      const hear = (chunk: Buffer) => {
        output += chunk.toString()
        if (said.test(output)) resume(Effect.succeed(output))
      }
      child.stdout.on("data", hear)
      child.stderr.on("data", hear)
      child.once("close", () => resume(Effect.succeed(output)))
    })
  })

const bindingRequest = Buffer.from(`000100002112a442${"00".repeat(12)}`, "hex")

/** Waits until a STUN server answers. */
const answering = (port: number) =>
  Effect.callback<void>((resume) => {
    const socket = createSocket("udp4")
    const again = setInterval(() => socket.send(bindingRequest, port, "127.0.0.1"), 50)
    socket.once("message", () => {
      clearInterval(again)
      socket.close(() => resume(Effect.void))
    })
  })

/** coturn as it is shipped, but for where it listens. */
class Coturn extends Context.Service<Coturn, { readonly port: number }>()(
  "test/security/relays.test/Coturn"
) {
  static readonly layer = Layer.effect(
    Coturn,
    Effect.gen(function* () {
      const port = yield* freeUdpPort
      if (!installed) return Coturn.of({ port })
      const relays = ["127.0.0.1", ...(hasIPv6 ? ["::1"] : [])]
      const args = [
        "-c",
        shipped,
        "--realm=test",
        `--static-auth-secret=${secret}`,
        "--listening-ip=127.0.0.1",
        `--listening-port=${port}`,
        ...relays.map((address) => `--relay-ip=${address}`),
        "--no-tls",
        "--no-dtls",
        "--pidfile=/dev/null"
      ]
      yield* Effect.acquireRelease(
        Effect.sync(() => spawn("turnserver", args, { stdio: "ignore" })),
        (server) => Effect.sync(() => server.kill("SIGKILL"))
      )
      yield* answering(port)
      return Coturn.of({ port })
    })
  )
}

const RelaysLive = Layer.unwrap(
  Effect.map(Coturn, ({ port }) =>
    TurnServers.layer.pipe(
      Layer.provide(Settings.layer),
      Layer.provide(
        ConfigProvider.layer(
          ConfigProvider.fromEnv({
            env: { SVC_TURN_URLS: `turn:127.0.0.1:${port}`, SVC_TURN_SECRET: secret }
          })
        )
      )
    )
  )
).pipe(Layer.provideMerge(Coturn.layer))

interface Credentials {
  readonly username: string
  readonly credential: string
}

/** What a player is given, `secondsAgo`. */
const given = Effect.fnUntraced(function* (player: string, secondsAgo = 0) {
  const relays = yield* TurnServers
  const now = yield* TestClock.withLive(Clock.currentTimeMillis)
  yield* TestClock.setTime(now - secondsAgo * 1000)
  const { iceServers } = yield* relays.serversFor(player, "relay")
  const { credential = "", username = "" } = iceServers[0] ?? {}
  return { username, credential }
})

/** What becomes of a relay to a peer: the code and words of the refusal, or `granted`. */
const relayTo = Effect.fnUntraced(function* (
  peer: string,
  { credential, username }: Credentials,
  ...more: ReadonlyArray<string>
) {
  const { port } = yield* Coturn
  const as = ["-u", username, "-w", credential, "-p", String(port)]
  const to = ["-e", peer, ...(isIPv6(peer) ? ["-x"] : []), "-c", "-n", "1", ...more]
  const end = /error \d+ \(|Total connect time|Cannot complete/
  // 437: the port that the client got is still that of an earlier allocation.
  const output = yield* outputUntil(
    "turnutils_uclient",
    ["-v", ...as, ...to, "127.0.0.1"],
    end
  ).pipe(Effect.scoped, Effect.repeat({ until: (text) => !text.includes("error 437") }))
  if (/Total connect time/.test(output)) return "granted"
  return /error (\d+ \([^)]*\))/.exec(output)?.[1] ?? "unauthorized"
})

/** Of this machine, of internal networks, of the cloud's, and whatever stands for one of those. */
const internal = [
  "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.254 127.0.0.1 127.8.8.8",
  "169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.168.0.1",
  "192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1",
  "255.255.255.255",
  ":: ::1 ::2 ::127.0.0.1 ::10.0.0.1 ::ffff:10.0.0.1 ::ffff:127.0.0.1 ::ffff:169.254.169.254",
  "64:ff9b::a00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 2001:0:a00:1:: 2001:db8::1 2002:a00:1::",
  "2002:7f00:1:: 2002:c0a8:1:: fc00::1 fd12:3456::1 fe80::1 febf::1 ff02::1"
]
  .join(" ")
  .split(" ")
const reachable = internal.filter((peer) => hasIPv6 || !isIPv6(peer))

layer(RelaysLive, { timeout: "30 seconds" })("a relay (needs coturn)", (it) => {
  it.effect.skipIf(!installed)("reaches the world, and none of 40 internal addresses", () =>
    Effect.gen(function* () {
      const reached: Array<string> = []
      const worlds = ["9.9.9.9", ...(hasIPv6 ? ["2606:4700::1111"] : [])]
      for (const [index, peer] of worlds.entries()) {
        assert.strictEqual(yield* relayTo(peer, yield* given(`env.world${index}`)), "granted", peer)
      }
      for (const [index, peer] of reachable.entries()) {
        for (const more of [[], ["-s"]]) {
          const told = yield* relayTo(peer, yield* given(`env.p${index}`), ...more)
          if (told !== "403 (Forbidden IP)") reached.push(`${peer} ${more.join(" ")}: ${told}`)
        }
      }
      assert.isAtLeast(internal.length, 40)
      assert.deepStrictEqual(reached, [])
    })
  )

  it.effect.skipIf(!installed)("carries no TCP", () =>
    Effect.gen(function* () {
      const told = yield* relayTo("9.9.9.9", yield* given("env.tcp"), "-T")
      assert.match(told, /^442 /)
    })
  )

  it.effect.skipIf(!installed)("is for who has credentials that have not ended", () =>
    Effect.gen(function* () {
      const good = yield* given("env.ann")
      const other = yield* given("env.ben")
      const cases: ReadonlyArray<readonly [string, Credentials]> = [
        ["another's password", { ...good, credential: other.credential }],
        ["no password", { ...good, credential: "x" }],
        ["a later end", { ...good, username: good.username.replace(/^\d/, "9") }],
        ["no end", { ...good, username: "env.ann" }],
        ["ended a second ago", yield* given("env.ann", turn.credentialSeconds + 1)]
      ]
      for (const [name, credentials] of cases) {
        assert.strictEqual(yield* relayTo("9.9.9.9", credentials), "unauthorized", name)
      }
      const almost = yield* given("env.ann", turn.credentialSeconds - 30)
      assert.strictEqual(yield* relayTo("9.9.9.9", almost), "granted")
    })
  )

  it.effect.skipIf(!installed)("gives a player 16 allocations, whichever credentials it has", () =>
    Effect.gen(function* () {
      const all = yield* relayTo("9.9.9.9", yield* given("env.many"), "-m", "17")
      assert.strictEqual(all, "486 (Allocation Quota Reached)")
      const fresh = yield* relayTo("9.9.9.9", yield* given("env.many", 60))
      assert.strictEqual(fresh, "486 (Allocation Quota Reached)")
      assert.strictEqual(yield* relayTo("9.9.9.9", yield* given("env.another")), "granted")
    })
  )
})
