/**
 * The bots of `svc seed --play`: guests who open three rooms, move, score and chat, and are deleted at the
 * end.
 */
import { Effect, Random, Schedule, Schema } from "effect"
import { type EnvironmentConfig } from "#rpc/config-document/document"
import { modesOf } from "#rpc/config-document/multiplayer"
import { Reply } from "#rpc/realtime"
import { RoomRef } from "#rpc/rooms/frames"
import { exitCodes, Failure } from "./failures.ts"
import {
  createGuest,
  deletePlayer,
  type Pace,
  type SeedTarget,
  type SignedIn
} from "./seed-service.ts"

/** Names of the bots of each room. */
const rooms = [
  ["Bot Ada", "Bot Linus", "Bot Grace"],
  ["Bot Alan", "Bot Edsger", "Bot Barbara"],
  ["Bot Ken", "Bot Radia", "Bot Donald"]
] as const

/** The number of rooms that bots play in. */
export const roomCount = rooms.length

const chat = ["gg", "nice one", "wait for me", "again?", "over here", "so close"]

const step = "1 second"
const replyTimeout = "30 seconds"

const lost = (what: string) =>
  new Failure({
    exitCode: exitCodes.unreachable,
    code: "unreachable",
    message: `Failed to play with a bot: ${what}.`,
    hints: ["Check with svc doctor, then run svc seed --play again."]
  })

/** The frames that the bots send and await. */
interface BotSocket {
  readonly send: (frame: object) => void
  /** Sends a frame and returns the data of its reply. */
  readonly call: (frame: object) => Effect.Effect<unknown, Failure>
  /** Fails when the socket closes. */
  readonly closed: Effect.Effect<never, Failure>
}

const decodeEvent = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ t: Schema.String }))
)
const decodeReply = Schema.decodeUnknownOption(Schema.fromJsonString(Reply))

/** Waits for a frame that `read` accepts, after `start` has run. */
const awaitFrame = <A>(
  socket: WebSocket,
  start: () => void,
  read: (text: string) => Effect.Effect<A, Failure> | undefined
) =>
  Effect.callback<A, Failure>((resume) => {
    const onMessage = ({ data }: MessageEvent) => {
      const result = read(String(data))
      if (result !== undefined) resume(result)
    }
    const onClose = ({ code, reason }: CloseEvent) =>
      resume(Effect.fail(lost(`the socket closed with ${code} ${reason}`.trim())))
    socket.addEventListener("message", onMessage)
    socket.addEventListener("close", onClose)
    start()
    return Effect.sync(() => {
      socket.removeEventListener("message", onMessage)
      socket.removeEventListener("close", onClose)
    })
  })

const isWelcome = (text: string) => {
  const event = decodeEvent(text)
  return event._tag === "Some" && event.value.t === "welcome" ? Effect.void : undefined
}

const inTime = Effect.timeoutOrElse({
  duration: replyTimeout,
  orElse: () => Effect.fail(lost("no reply within 30 seconds"))
})

/** Opens the socket of a player. */
const openSocket = Effect.fnUntraced(function* (
  { players }: SeedTarget,
  token: string,
  key: string
) {
  const socket = yield* Effect.acquireRelease(
    Effect.sync(() => new WebSocket(`${players.url.replace(/^http/, "ws")}/v1/realtime`)),
    (opened) => Effect.sync(() => opened.close())
  )
  const send = (frame: object) => socket.send(JSON.stringify(frame))
  const authenticate = () =>
    socket.addEventListener("open", () => send({ t: "auth", key, token }), { once: true })
  yield* awaitFrame(socket, authenticate, isWelcome).pipe(inTime)
  let calls = 0
  const call = (frame: object) =>
    Effect.suspend(() => {
      calls += 1
      const rid = String(calls)
      return awaitFrame(
        socket,
        () => send({ ...frame, rid }),
        (text) => {
          const reply = decodeReply(text)
          if (reply._tag === "None" || reply.value.rid !== rid) return undefined
          const { data, error, ok } = reply.value
          return ok
            ? Effect.succeed(data)
            : Effect.fail(lost(error?.message ?? "a frame was refused"))
        }
      ).pipe(inTime)
    })
  const closed = awaitFrame<never>(
    socket,
    () => undefined,
    () => undefined
  )
  const opened: BotSocket = { send, call, closed }
  return opened
})

interface Bot {
  readonly socket: BotSocket
  readonly player: SignedIn
}

const makeBot = Effect.fnUntraced(function* (
  target: SeedTarget,
  { key, name, pace }: { readonly key: string; readonly name: string; readonly pace: Pace }
) {
  const player = yield* Effect.acquireRelease(pace(createGuest(target, name)), (guest) =>
    Effect.ignore(deletePlayer(target, guest))
  )
  const bot: Bot = { player, socket: yield* openSocket(target, player.accessToken, key) }
  return bot
})

/** One second of a bot's play: it moves, sometimes scores and sometimes chats. */
const playStep = Effect.fnUntraced(function* ({ socket }: Bot, isHost: boolean, round: number) {
  const x = yield* Random.nextIntBetween(0, 100)
  const y = yield* Random.nextIntBetween(0, 100)
  const luck = yield* Random.next
  socket.send({
    t: "setMyState",
    patch: { x, y, ...(luck < 0.3 ? { score: round * 10 + x } : {}) }
  })
  socket.send({ t: "send", type: "move", data: { x, y } })
  if (luck > 0.9) {
    const text = yield* Random.choice(chat)
    socket.send({ t: "send", type: "chat", data: { text } })
  }
  if (isHost && round % 10 === 0) socket.send({ t: "setState", patch: { round: round / 10 } })
})

/** Plays a bot until the socket closes. */
const play = (bot: Bot, isHost: boolean) => {
  let round = 0
  const next = Effect.suspend(() => {
    round += 1
    return playStep(bot, isHost, round)
  })
  return Effect.raceFirst(Effect.repeat(next, Schedule.spaced(step)), bot.socket.closed)
}

const decodeRoom = Schema.decodeUnknownEffect(RoomRef)

/** Opens the rooms with their bots; returns the codes of the rooms, and the bots' play. */
export const openRooms = Effect.fnUntraced(function* (
  target: SeedTarget,
  config: EnvironmentConfig,
  options: { readonly key: string; readonly pace: Pace }
) {
  const modes = modesOf(config)
  const playing: Array<ReturnType<typeof play>> = []
  const codes: Array<string> = []
  for (const [index, names] of rooms.entries()) {
    const mode = modes[index % modes.length]
    if (mode === undefined) continue
    const bots = yield* Effect.forEach(names.slice(0, mode.maxPlayers), (name) =>
      makeBot(target, { ...options, name })
    )
    const [host, ...others] = bots
    if (host === undefined) continue
    const opened = yield* host.socket.call({ t: "create", mode: mode.key })
    const { code, roomId } = yield* decodeRoom(opened).pipe(
      Effect.mapError(() => lost("the reply to create has no room"))
    )
    codes.push(code)
    for (const { socket } of others) yield* socket.call({ t: "join", roomId })
    host.socket.send({ t: "setState", patch: { round: 1, map: "harbour" } })
    playing.push(...bots.map((bot) => play(bot, bot === host)))
  }
  return { codes, playing: Effect.all(playing, { concurrency: "unbounded", discard: true }) }
})
