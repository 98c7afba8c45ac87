/** Links between this node and the others (see {@link RemoteRooms}): outgoing and incoming ends. */
import { Clock, Context, Effect, Layer, Option, Schedule, Schema } from "effect"
import { RunnerAddress, ShardingConfig } from "effect/cluster"
import { LocalRooms } from "#entities/room/entity"
import { RemoteRooms } from "#entities/room/remote"
import { NodeFlush } from "#server/platform/flush"
import { readings } from "#server/platform/metrics"
import { monotonicMillis } from "#server/platform/monotonic"
import { pong, ping, LinkStats, LinkBatch, type LinkStatus, RunnerLink } from "./runner-link.ts"
import {
  type RunnerConnection,
  type RunnerConnectionEvents,
  RunnerTransport
} from "./runner-transport.ts"

const heartbeatMillis = 400

/** Liveness of the other runners. */
export class PeerRunners extends Context.Service<
  PeerRunners,
  {
    /** Status of the link to the runner; opens the link when there is none. */
    readonly status: (address: RunnerAddress.RunnerAddress) => LinkStatus
  }
>()("server/cluster/runner-links/PeerRunners") {}

const decodeBatch = Schema.decodeUnknownOption(LinkBatch)

/** Hands a batch to this node's rooms and gateway; returns the rooms that refused their inputs. */
const dispatch = (local: LocalRooms["Service"], batch: LinkBatch): ReadonlyArray<string> => {
  const refused: Array<string> = []
  for (const { inputs, node, room, watch } of batch.inputs) {
    const actor = local.actors.get(room)
    if (actor === undefined || actor.fenced || !actor.watches(node, watch)) refused.push(room)
    else actor.submit(node, inputs)
  }
  for (const outputs of batch.items) local.remoteOutputs.send(outputs)
  return refused
}

/** Incoming end of another node's link. An invalid frame closes the connection. */
const incoming = (
  local: LocalRooms["Service"],
  connection: RunnerConnection,
  ended: (reason: string) => void
): RunnerConnectionEvents => ({
  received: (frame) => {
    if (frame === ping) return connection.send(pong)
    const batch = decodeBatch(frame)
    if (Option.isNone(batch)) return connection.close("the frame is not a valid link batch")
    const refused = dispatch(local, batch.value)
    if (refused.length > 0) connection.send(JSON.stringify(refused))
  },
  ended
})

const addressText = ({ host, port }: RunnerAddress.RunnerAddress): string => `${host}|${port}`

const addressOf = (text: string): RunnerAddress.RunnerAddress => {
  const [host = "", port] = text.split("|")
  return RunnerAddress.make(host, Number(port))
}

const registerMetrics = Effect.fnUntraced(function* (
  links: ReadonlyMap<string, RunnerLink>,
  stats: LinkStats
) {
  const { counter, gauge } = yield* readings
  gauge("svc_lines", "Links to other runners that reply to heartbeats.", () => {
    let alive = 0
    for (const link of links.values()) if (link.isAlive) alive += 1
    return alive
  })
  counter("svc_line_frames_total", "Frames sent over runner links.", () => stats.frames)
  counter(
    "svc_line_characters_total",
    "Characters sent over runner links; most are one byte.",
    () => stats.characters
  )
  counter(
    "svc_lines_broken_total",
    "Runner links that closed after they had been established.",
    () => stats.broken
  )
})

/** All links of this runner. */
export const RunnerLinksLive = Layer.effectContext(
  Effect.gen(function* () {
    const { runnerAddress } = yield* ShardingConfig.ShardingConfig
    const now = monotonicMillis(yield* Clock.Clock)
    const scheduler = yield* NodeFlush
    const local = yield* LocalRooms
    const transport = yield* RunnerTransport
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    const links = new Map<string, RunnerLink>()
    const stats = new LinkStats()
    yield* registerMetrics(links, stats)
    const write = (log: Effect.Effect<void>) => void runFork(log)

    const linkTo = (to: string): RunnerLink => {
      const known = links.get(to)
      if (known !== undefined) return known
      const link = new RunnerLink({
        open: (events) => transport.open(addressOf(to), events),
        now,
        scheduler,
        stats,
        onClose: (reason, wasAlive) => {
          const log = wasAlive ? Effect.logInfo : Effect.logDebug
          write(log("The link to a runner has closed", to, reason))
        }
      })
      links.set(to, link)
      return link
    }

    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        for (const link of links.values()) link.close()
      })
    )
    transport.accept((connection) =>
      incoming(local, connection, (reason) =>
        write(Effect.logInfo("A link from a runner has closed", reason))
      )
    )
    yield* Effect.sync(() => {
      for (const [to, link] of links) {
        if (link.isIdle) links.delete(to)
        else link.heartbeat()
      }
    }).pipe(Effect.repeat(Schedule.spaced(heartbeatMillis)), Effect.forkScoped)

    return Context.make(RemoteRooms, {
      address: Option.getOrNull(Option.map(runnerAddress, addressText)),
      sendInputs: (to, inputs, onLost) => linkTo(to).submit(inputs, onLost),
      sendOutputs: (to, items, onLost) => linkTo(to).deliver(items, onLost)
    }).pipe(Context.add(PeerRunners, { status: (address) => linkTo(addressText(address)).status }))
  })
)
