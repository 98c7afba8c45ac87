/** What virtual players do at random times: everything a game may do, and what it should not do. */
import { actInChannels } from "./channel-play.ts"
import type { ConfigPushes } from "./config-pushes.ts"
import type { PlayerRecords } from "./player-records.ts"
import type { Ledger, Player } from "./player.ts"
import type { Chance } from "./random.ts"
import type { Runner } from "./runner.ts"
import { signal } from "./signals.ts"
import type { Simulator } from "./simulator.ts"

const modes = ["duel", "party", "drop_in", "mesh"] as const
/** Few codes, so that some are taken. */
const codes = ["ABCD", "EFGH", "IJKL"] as const

/** Actions, each with its relative frequency. */
type Choices = ReadonlyArray<readonly [weight: number, act: () => void]>

const choose = (chance: Chance, choices: Choices): void => {
  const total = choices.reduce((sum, [weight]) => sum + weight, 0)
  let left = chance.fraction() * total
  for (const [weight, act] of choices) {
    left -= weight
    if (left < 0) return act()
  }
}

export interface Play {
  readonly chance: Chance
  readonly ledger: Ledger
  readonly players: ReadonlyArray<Player>
  readonly runners: () => ReadonlyArray<Runner>
  /** Whether this simulation has channels. */
  readonly channels: boolean
  /** Whether players write to their rooms all the time. */
  readonly busy: boolean
  /** Whether moderators ban, rename and restrict players. */
  readonly moderated: boolean
  /** Whether developers push configs. */
  readonly configured: boolean
}

const nothing = (): void => undefined

const connect = ({ chance, runners }: Play, player: Player): void => {
  const runner = chance.pick(runners().filter(({ open }) => open))
  if (runner !== undefined) player.connect(runner)
}

/** The node notices a close at once or only when its heartbeat fails. */
const drop = ({ chance }: Play, player: Player): void =>
  player.drop(chance.happens(0.7) ? chance.integer(0, 20) : chance.integer(1000, 9000))

/** A client that stops reading for a while. */
const dawdle = ({ chance }: Play, player: Player): void => {
  const { socket } = player
  if (socket === undefined) return
  socket.read(false)
  player.simulator.after(chance.integer(200, 4000), () => socket.read(true))
}

const join = (play: Play, player: Player): void => {
  const room = play.chance.pick(Array.from(play.ledger.codes))
  if (room === undefined) return
  const [roomId, code] = room
  player.ask("join", play.chance.happens(0.5) ? { roomId } : { code })
}

const create = ({ chance }: Play, player: Player): void =>
  player.ask("create", {
    mode: chance.pick(modes),
    private: chance.happens(0.2),
    hostOnlyState: chance.happens(0.2),
    ...(chance.happens(0.2) ? { code: chance.pick(codes) } : {})
  })

/** Friends who are free ask for the same mode within a moment, while the room of the first is being opened. */
const matchTogether = ({ chance, players }: Play, player: Player, mode: string): void => {
  for (const friend of players) {
    if (friend === player) continue
    friend.simulator.after(chance.fraction() * 20, () => {
      const isFree = friend.welcome && friend.view === undefined && !friend.waitsFor("quickMatch")
      if (isFree) friend.ask("quickMatch", { mode })
    })
  }
}

/** A waiting player may cancel at the very moment the match is made. */
const match = (play: Play, player: Player): void => {
  const { chance, players } = play
  const isTogether = chance.happens(0.5)
  const mode = isTogether ? "drop_in" : (chance.pick(modes) ?? "duel")
  player.ask("quickMatch", { mode })
  if (isTogether) matchTogether(play, player, mode)
  for (const other of players) {
    if (!other.waitsFor("quickMatch") || !chance.happens(0.1)) continue
    other.simulator.after(chance.fraction() * 20, () => {
      if (other.waitsFor("quickMatch")) other.ask("cancelMatch")
    })
  }
}

const resume = (play: Play, player: Player): void => {
  const roomId = player.kept ?? play.chance.pick(Array.from(play.ledger.codes.keys()))
  if (roomId !== undefined) player.ask("resume", { roomId })
}

/** Operations of a host that the random play uses; without `unban`, a kick stays in force. */
const moderations = ["kick", "kick", "mute", "unmute", "host", "team"] as const

/** What members do with the rights of their mode: often more than it gives. */
const useRights = (chance: Chance, player: Player): void => {
  const target = chance.pick(player.view?.players ?? [])?.id
  const { vote } = player.view ?? {}
  if (target === undefined) return
  const team = chance.pick(["red", "blue"])
  const op = chance.pick(moderations)
  if (vote !== undefined && chance.happens(0.6)) {
    return player.ask("vote", { voteId: vote.voteId, yes: chance.happens(0.6) })
  }
  choose(chance, [
    [2, () => player.ask("vote", { op: "kick", playerId: target })],
    [2, () => player.ask("setTeam", { team })],
    [
      player.view?.hostId === player.id ? 6 : 1,
      () => {
        const payload = { op, playerId: target, ...(op === "team" ? { team } : {}) }
        player.ask("roomModerate", payload, 0, op === "kick" ? target : undefined)
      }
    ]
  ])
}

const inRoom = (play: Play, player: Player): Choices => {
  const { chance, players } = play
  const isPeer = player.view?.transport === "p2p"
  return [
    [isPeer ? 120 : 1, () => signal(chance, player, players)],
    [isPeer ? 4 : 1, () => player.ask("iceServers")],
    [30, () => player.ask("send", { type: "x", data: { n: player.next() } })],
    [
      5,
      () => {
        const to = players.filter(() => chance.happens(0.4)).map(({ id }) => id)
        player.ask("send", { type: "y", data: { n: player.next() }, to })
      }
    ],
    [15, () => write(player)],
    [15, () => writeShared(chance, player)],
    [8, () => player.ask("setMyState", { patch: { n: player.next() } })],
    [4, () => player.ask("lock", { locked: chance.happens(0.4) })],
    [{ party: 40, duel: 25 }[player.view?.mode ?? ""] ?? 1, () => useRights(chance, player)],
    [10, () => player.ask("leave")],
    [2, () => join(play, player)],
    [2, () => match(play, player)]
  ]
}

/** Writes the player's own key of the room state. */
export const write = (player: Player): void => {
  const n = player.next()
  player.ask("setState", { patch: { [player.id]: n } }, n)
}

/** Keys of the room state that all members write. */
const sharedKeys = ["turn", "score"] as const

/** Writes a shared key, often several times in a row, with and without asking for a reply. */
const writeShared = (chance: Chance, player: Player): void => {
  const key = chance.pick(sharedKeys) ?? "turn"
  for (let writes = chance.integer(1, 4); writes > 0; writes--) {
    player.writeShared(key, chance.happens(0.5))
  }
}

const outside = (play: Play, player: Player): Choices => [
  [player.kept === undefined ? 1 : 60, () => resume(play, player)],
  [30, () => match(play, player)],
  [8, () => create(play, player)],
  [15, () => join(play, player)],
  [1, () => player.ask("leave")],
  [1, () => player.ask("cancelMatch")]
]

const matching = (play: Play, player: Player): Choices => [
  [20, nothing],
  [6, () => player.ask("cancelMatch")],
  [1, () => player.ask("leave")],
  [1, () => match(play, player)],
  [1, () => join(play, player)]
]

const entering = ["create", "join", "resume", "leave"]

/** One random action of a player. */
export const act = (play: Play, player: Player): void => {
  const { chance } = play
  if (player.socket === undefined) {
    return choose(chance, [
      [player.lastClose === 1012 ? 20 : 3, () => connect(play, player)],
      [1, nothing]
    ])
  }
  if (!player.welcome)
    return choose(chance, [
      [15, nothing],
      [1, () => drop(play, player)]
    ])
  const busy = entering.some((t) => player.waitsFor(t))
  const own = player.waitsFor("quickMatch")
    ? matching(play, player)
    : player.view === undefined
      ? outside(play, player)
      : inRoom(play, player)
  choose(chance, [
    [busy ? 20 : 1, nothing],
    [busy ? 4 : 40, () => choose(chance, own)],
    [play.channels ? 60 : 0, () => actInChannels(chance, player, play.players)],
    [2, () => drop(play, player)],
    [1, () => connect(play, player)],
    [1, () => dawdle(play, player)]
  ])
}

/** Keeps a player acting while the given condition holds. */
export const keepActing = (play: Play, player: Player, goesOn: () => boolean): void => {
  const step = (): void => {
    if (!goesOn()) return
    act(play, player)
    player.simulator.after(play.chance.integer(10, 10 + play.chance.integer(50, 1500)), step)
  }
  player.simulator.after(play.chance.integer(0, 1000), step)
}

/** Keeps a player writing shared keys of its room while the given condition holds. */
export const keepWriting = ({ chance }: Play, player: Player, goesOn: () => boolean): void => {
  const step = (): void => {
    if (!goesOn()) return
    if (player.welcome && player.view !== undefined) writeShared(chance, player)
    player.simulator.after(chance.integer(2, 60), step)
  }
  player.simulator.after(chance.integer(0, 1000), step)
}

/** Keeps moderators changing players while the given condition holds. */
export const keepModerating = (
  { chance, players }: Pick<Play, "chance" | "players">,
  records: PlayerRecords,
  goesOn: () => boolean
): void => {
  const player = chance.pick(players)
  if (player === undefined) return
  const { simulator } = player
  simulator.after(chance.integer(50, 1000), () => {
    if (!goesOn()) return
    records.moderate(simulator, chance, player.id)
    keepModerating({ chance, players }, records, goesOn)
  })
}

/** Keeps developers pushing configs while the given condition holds. */
export const keepConfiguring = (
  { chance }: Pick<Play, "chance">,
  configs: ConfigPushes,
  simulator: Simulator,
  goesOn: () => boolean
): void => {
  simulator.after(chance.integer(100, 1500), () => {
    if (!goesOn()) return
    configs.push(simulator, chance)
    keepConfiguring({ chance }, configs, simulator, goesOn)
  })
}

/** A well-behaved idle client: stays connected and in its room. */
export const rest = (play: Play, player: Player): void => {
  if (player.socket === undefined) return connect(play, player)
  player.socket.read(true)
  const idle = player.welcome && player.pending.size === 0 && player.view === undefined
  if (idle && player.kept !== undefined) {
    player.ask("resume", { roomId: player.kept })
    player.kept = undefined
  }
}
