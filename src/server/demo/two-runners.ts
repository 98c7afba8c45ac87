/**
 * Messages between the two runners of `npm run start:two`, which their parent process relays. The
 * runner that has a room kills itself, as a crash would. A service started alone has none of this.
 */
import cluster from "node:cluster"
import { Context, Effect, Layer, Option } from "effect"
import type { RoomId } from "#rpc/ids"
import { LocalRooms } from "#entities/room/entity"
import { Settings } from "../platform/settings/settings.ts"
import { decodeKillRunner, KillRunner } from "./kill-message.ts"

/** Asks the process that started the runners to have the runner of a room killed; undefined without one. */
export const KillRunnerOf = Context.Reference<((roomId: RoomId) => void) | undefined>(
  "server/demo/two-runners/KillRunnerOf",
  {
    defaultValue: () =>
      cluster.isWorker
        ? (roomId) => void process.send?.(KillRunner.make({ killRunnerOf: roomId }))
        : undefined
  }
)

/** Kills this process when a message names one of its rooms. */
export const TwoRunnersLive = Layer.effectDiscard(
  Effect.gen(function* () {
    const kill = yield* KillRunnerOf
    const { production } = yield* Settings
    if (production || kill === undefined) return
    const { actors } = yield* LocalRooms
    const listener = (message: unknown) => {
      const named = decodeKillRunner(message)
      if (Option.isNone(named)) return
      const room = actors.get(named.value.killRunnerOf)
      if (room?.state !== undefined) process.kill(process.pid, "SIGKILL")
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => process.on("message", listener)),
      () => Effect.sync(() => process.off("message", listener))
    )
  })
)
