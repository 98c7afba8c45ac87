/**
 * The bots of `svc seed --play`: guests who open three rooms, move, score and chat, and are deleted at the
 * end.
 */
import { Effect, Random, Schedule, Schema } from "effect"
import { type EnvironmentConfig } from "#rpc/config-document/document"
import { modesOf } from "#rpc/config-document/multiplayer"

import { RoomRef } from "#rpc/rooms/frames"
import { exitCodes, Failure } from "./failures.ts"
import { openPlayerSocket, type PlayerSocket } from "./player-socket.ts"
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

const lost = (what: string) =>
  new Failure({
    exitCode: exitCodes.unreachable,
    code: "unreachable",
    message: `Failed to play with a bot: ${what}.`,
    hints: ["Check with svc doctor, then run svc seed --play again."]
  })

interface Bot {
  readonly socket: PlayerSocket
  readonly player: SignedIn
}

const makeBot = Effect.fnUntraced(function* (
  target: SeedTarget,
  { key, name, pace }: { readonly key: string; readonly name: string; readonly pace: Pace }
) {
  const player = yield* Effect.acquireRelease(pace(createGuest(target, name)), (guest) =>
    Effect.ignore(deletePlayer(target, guest))
  )
  const { url } = target.players
  const socket = yield* openPlayerSocket({ url, key, token: player.accessToken })
  const bot: Bot = { player, socket }
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
    const text = yield* Effect.orDie(Random.choice(chat))
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
export const openRooms = Effect.fnUntraced(
  function* (
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
        Effect.mapError(() => "the reply to create has no room")
      )
      codes.push(code)
      for (const { socket } of others) yield* socket.call({ t: "join", roomId })
      host.socket.send({ t: "setState", patch: { round: 1, map: "harbour" } })
      playing.push(...bots.map((bot) => play(bot, bot === host)))
    }
    const all = Effect.all(playing, { concurrency: "unbounded", discard: true })
    return { codes, playing: Effect.mapError(all, lost) }
  },
  Effect.mapError((error) => (typeof error === "string" ? lost(error) : error))
)
