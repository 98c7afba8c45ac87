/**
 * Version conflicts: runners of two releases that cannot work together. Both ends refuse each
 * connection between them, and log it. The older runner drains once at least half of the listed
 * runners are newer. A single newer one, started by mistake, ends no other, and half of the runners
 * always serve.
 */
import { Context, Effect } from "effect"
import manifest from "../../../package.json" with { type: "json" }
import {
  clusterProtocolVersion,
  HandshakeError,
  type RunnerIdentity,
  type RunnerPeer
} from "./handshake.ts"

/** Versions of this process; tests set others. */
export const RunnerRelease = Context.Reference<Pick<RunnerIdentity, "protocol" | "release">>(
  "server/cluster/runner-versions/RunnerRelease",
  { defaultValue: () => ({ protocol: clusterProtocolVersion, release: manifest.version }) }
)

/** Stops this process as an orchestrator would, with a handover of its rooms. */
export const RequestDrain = Context.Reference<Effect.Effect<void>>(
  "server/cluster/runner-versions/RequestDrain",
  { defaultValue: () => Effect.sync(() => void process.kill(process.pid, "SIGTERM")) }
)

/** Whether a runner drains that has met these newer ones. */
export const shouldDrain = (listed: ReadonlyArray<string>, newer: ReadonlySet<string>): boolean => {
  const met = listed.filter((address) => newer.has(address)).length
  return met > 0 && met * 2 >= listed.length
}

/** Returns a check that fails if this runner and the peer cannot work together. */
export const makeVersionCheck = Effect.fnUntraced(function* (
  self: RunnerIdentity,
  listed: Effect.Effect<ReadonlyArray<string>>
) {
  const drain = yield* RequestDrain
  const newer = new Set<string>()
  let isDraining = false

  return Effect.fnUntraced(function* (peer: RunnerPeer) {
    if (peer.protocol === self.protocol) return
    const isNewer = peer.protocol > self.protocol
    if (isNewer) {
      const addresses = yield* listed
      if (addresses.includes(peer.address)) newer.add(peer.address)
      if (!isDraining && shouldDrain(addresses, newer)) {
        isDraining = true
        yield* Effect.logWarning("Draining, since newer runners replace this one")
        yield* drain
      }
    }
    const [older, other] = isNewer ? [self, peer] : [peer, self]
    return yield* new HandshakeError({
      reason: "version",
      message:
        `Release ${older.release} (cluster protocol ${older.protocol}) cannot work with ` +
        `${other.release} (cluster protocol ${other.protocol}): replace all runners by the newer release.`
    })
  })
})
