/** The lines between this node and others (see {@link RemoteRooms}), both ends of them. */
import { Clock, Context, Effect, Layer, Option, Schedule, Schema } from "effect"
import { RunnerAddress, ShardingConfig } from "effect/cluster"
import { LocalRooms } from "#entities/room/entity"
import { RemoteRooms } from "#entities/room/lines"
import { NodeFlush } from "#server/platform/flush"
import { readings } from "#server/platform/metrics"
import { pong, ping, LinkStats, LinkBatch, type LinkStatus, RunnerLink } from "./runner-link.ts"
import {
  type RunnerConnection,
  type RunnerConnectionEvents,
  RunnerTransport
} from "./runner-transport.ts"

const beatMillis = 400

/** Signs of life. */
export class PeerRunners extends Context.Service<
  PeerRunners,
  {
    /** What is heard of the runner over the line to it, which opens when there is none. */
    readonly status: (address: RunnerAddress.RunnerAddress) => LinkStatus
  }
>()("server/cluster/runner-links/Neighbours") {}

const decodeFreight = Schema.decodeUnknownOption(LinkBatch)

/** Hands what arrives to the rooms and the gateway of this node; answers who refused. */
const unload = (local: LocalRooms["Service"], freight: LinkBatch): ReadonlyArray<string> => {
  const refused: Array<string> = []
  for (const { inputs, node, room, watch } of freight.inputs) {
    const actor = local.actors.get(room)
    if (actor === undefined || actor.fenced || !actor.watches(node, watch)) refused.push(room)
    else actor.submit(node, inputs)
  }
  for (const told of freight.items) local.deliverFar(told)
  return refused
}

/** The end of another node's line; who sends something else is hung up on. */
const terminal = (
  local: LocalRooms["Service"],
  wire: RunnerConnection,
  ended: (why: string) => void
): RunnerConnectionEvents => ({
  received: (frame) => {
    if (frame === ping) return wire.send(pong)
    const freight = decodeFreight(frame)
    if (Option.isNone(freight)) return wire.close("what came is not what a line carries")
    const refused = unload(local, freight.value)
    if (refused.length > 0) wire.send(JSON.stringify(refused))
  },
  ended
})

const addressText = ({ host, port }: RunnerAddress.RunnerAddress): string => `${host}|${port}`

const addressOf = (text: string): RunnerAddress.RunnerAddress => {
  const [host = "", port] = text.split("|")
  return RunnerAddress.make(host, Number(port))
}

/** What the lines tell of themselves. */
const readLines = Effect.fnUntraced(function* (
  lines: ReadonlyMap<string, RunnerLink>,
  carried: LinkStats
) {
  const { counter, gauge } = yield* readings
  gauge("svc_lines", "Lines to other runners that answer.", () => {
    let answering = 0
    for (const line of lines.values()) if (line.isAlive) answering += 1
    return answering
  })
  counter("svc_line_frames_total", "Frames sent over the lines.", () => carried.frames)
  counter(
    "svc_line_characters_total",
    "Characters sent over the lines; most are a byte.",
    () => carried.characters
  )
  counter("svc_lines_broken_total", "Lines that broke once they stood.", () => carried.broken)
})

/** The lines of this runner. */
export const RunnerLinksLive = Layer.effectContext(
  Effect.gen(function* () {
    const { runnerAddress } = yield* ShardingConfig.ShardingConfig
    const clock = yield* Clock.Clock
    const turn = yield* NodeFlush
    const local = yield* LocalRooms
    const wires = yield* RunnerTransport
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    const lines = new Map<string, RunnerLink>()
    const carried = new LinkStats()
    yield* readLines(lines, carried)
    const now = () => clock.currentTimeMillisUnsafe()
    const note = (log: Effect.Effect<void>) => void runFork(log)

    const lineTo = (to: string): RunnerLink => {
      const known = lines.get(to)
      if (known !== undefined) return known
      const line = new RunnerLink({
        open: (events) => wires.open(addressOf(to), events),
        now,
        turn,
        carried,
        ended: (why, answered) => {
          const log = answered ? Effect.logInfo : Effect.logDebug
          note(log("The line to a runner has ended", to, why))
        }
      })
      lines.set(to, line)
      return line
    }

    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        for (const line of lines.values()) line.close()
      })
    )
    wires.accept((wire) =>
      terminal(local, wire, (why) => note(Effect.logInfo("A runner's line has ended", why)))
    )
    yield* Effect.sync(() => {
      for (const [to, line] of lines) {
        if (line.isIdle) lines.delete(to)
        else line.heartbeat()
      }
    }).pipe(Effect.repeat(Schedule.spaced(beatMillis)), Effect.forkScoped)

    return Context.make(RemoteRooms, {
      address: Option.getOrNull(Option.map(runnerAddress, addressText)),
      submit: (to, inputs, lost) => lineTo(to).submit(inputs, lost),
      tell: (to, items, lost) => lineTo(to).tell(items, lost)
    }).pipe(Context.add(PeerRunners, { status: (address) => lineTo(addressText(address)).status }))
  })
)
