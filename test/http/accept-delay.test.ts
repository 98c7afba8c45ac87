/** The wait of new connections until the process accepts them, as its own connection to itself measures it. */
import cluster from "node:cluster"
import { once } from "node:events"
import { type AddressInfo, connect, createServer } from "node:net"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { monotonicMillis } from "#entities/monotonic"
import { AcceptProbe } from "#server/http/accept-delay"

/** A server on a free port, with a probe. */
const listen = Effect.acquireRelease(
  Effect.gen(function* () {
    const server = createServer()
    server.on("error", () => undefined)
    const probe = new AcceptProbe(server, monotonicMillis(yield* Clock.Clock))
    server.listen(0, "127.0.0.1")
    yield* Effect.promise(() => once(server, "listening"))
    return { server, probe }
  }),
  ({ probe, server }) =>
    Effect.sync(() => {
      probe.stop()
      server.close()
    })
)

/** Two processes that share a port. */
const sharing = Effect.acquireRelease(
  Effect.promise(async () => {
    const exec = fileURLToPath(new URL("../support/shared-port.ts", import.meta.url))
    cluster.setupPrimary({ exec, execArgv: [] })
    const workers = [cluster.fork(), cluster.fork()]
    const [address] = await Promise.all(
      workers.map(async (worker): Promise<AddressInfo> => (await once(worker, "listening"))[0])
    )
    return { workers, port: address?.port ?? 0 }
  }),
  ({ workers }) =>
    Effect.sync(() => {
      for (const worker of workers) worker.kill()
    })
)

const blockMillis = 100

/** Keeps the event loop from accepting anything. */
const block = (): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockMillis)
}

describe("a probe of the accept queue", () => {
  it.live("measures at least the time for which the event loop was busy", () =>
    Effect.gen(function* () {
      const { probe, server } = yield* listen
      const accepted = once(server, "connection")
      probe.start()
      block()
      assert.isAtLeast(probe.millis, blockMillis)
      yield* Effect.promise(() => accepted)
      assert.isAtLeast(probe.millis, blockMillis)
    }).pipe(Effect.scoped)
  )

  it.live("takes no connection of another machine for its own, whatever its port", () =>
    Effect.gen(function* () {
      const { probe, server } = yield* listen
      probe.start()
      // The probe has its port before this process accepts it.
      yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
      const cut: Array<number> = []
      for (let remotePort = 1; remotePort < 65_536; remotePort++) {
        const destroy = () => cut.push(remotePort)
        server.emit("connection", { remotePort, remoteAddress: "192.0.2.1", destroy })
      }
      assert.deepStrictEqual(cut, [])
      const accepted = once(server, "connection")
      block()
      yield* Effect.promise(() => accepted)
      assert.isAtLeast(probe.millis, blockMillis)
    }).pipe(Effect.scoped)
  )

  it.live(
    "measures nothing where other processes share the port, which may accept the probe",
    () =>
      Effect.gen(function* () {
        const { port, workers } = yield* sharing
        const [worker] = workers
        for (let round = 0; round < 3; round++) {
          worker?.send("start")
          const accepted = Promise.race(workers.map((each) => once(each, "message")))
          connect({ host: "127.0.0.1", port }).on("error", () => undefined)
          yield* Effect.promise(() => accepted)
        }
        const measured = Effect.callback<number>((resume) => {
          worker?.on("message", (message) => {
            if (typeof message === "number") resume(Effect.succeed(message))
          })
          worker?.send("report")
        })
        assert.strictEqual(yield* measured, 0)
      }).pipe(Effect.scoped),
    { tags: "long" }
  )

  it.live("measures nothing at a server that does not listen", () =>
    Effect.gen(function* () {
      const { probe, server } = yield* listen
      yield* Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
      })
      probe.start()
      assert.strictEqual(probe.millis, 0)
    }).pipe(Effect.scoped)
  )
})
