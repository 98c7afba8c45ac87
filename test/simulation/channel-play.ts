/** What virtual players do in channels: everything a game may do, and what it should not do. */
import type { ChannelRules } from "./channel-rules.ts"
import { serverMade } from "./channel-rules.ts"
import type { Player } from "./player.ts"
import type { Chance } from "./random.ts"
import type { Simulator } from "./simulator.ts"

/** Few names, so that some are taken. */
const playerMade = ["@a", "@b"] as const

const ops = ["mute", "unmute", "kick", "ban", "unban", "invite", "allowSend"] as const

/** More channels than a connection may join. */
const tooMany = 9

const create = (chance: Chance, player: Player): void =>
  player.ask("channelCreate", {
    ...(chance.happens(0.8) ? { channel: chance.pick(playerMade) } : {}),
    ...(chance.happens(0.3) ? { maxMembers: chance.integer(1, 3) } : {}),
    ...(chance.happens(0.1) ? { join: "invited" } : {}),
    ...(chance.happens(0.1) ? { send: "speakers" } : {}),
    ...(chance.happens(0.5) ? { voice: { mode: "sfu" } } : {})
  })

export const say = (player: Player, channel: string): number => {
  const n = player.next()
  player.ask("channelSend", { channel, type: "x", data: { n } })
  return n
}

/** One random action of a player in the call of a channel. */
const actInCall = (
  chance: Chance,
  player: Player,
  channel: string,
  players: ReadonlyArray<Player>
): void => {
  const session = player.voice.sessions.get(channel)
  if (session === undefined) return player.ask("voiceJoin", { channel })
  const kind = chance.integer(0, 7)
  if (kind < 3) return player.ask("voicePublish", { channel, session, on: kind < 2 })
  if (kind === 3) return player.ask("voiceLeave", { channel })
  if (kind === 4) return player.ask("voiceJoin", { channel, session })
  if (kind === 5) return player.ask("voiceJoin", { channel })
  player.ask("voiceSignal", { channel, to: chance.pick(players)?.id, kind: "restart" })
}

/** One random action of a player in channels. */
export const actInChannels = (
  chance: Chance,
  player: Player,
  players: ReadonlyArray<Player>
): void => {
  const known = [...serverMade, ...playerMade]
  const own = chance.pick(Array.from(player.channels.views.keys()))
  const some = chance.pick(known) ?? "lobby"
  const kind = chance.integer(0, 49)
  if (kind < 12) return player.ask("channelJoin", { channel: some })
  if (kind < 17) return create(chance, player)
  if (kind < 19) return void say(player, some)
  if (kind === 19) {
    for (let i = 0; i < tooMany; i++) player.ask("channelCreate", {})
    return
  }
  if (kind < 23) {
    const again = kind < 22 ? ["channelJoin"] : ["channelLeave", "channelJoin"]
    for (const t of ["channelJoin", ...again]) player.ask(t, { channel: some })
    return
  }
  if (own === undefined) return
  if (kind < 31) return actInCall(chance, player, own, players)
  if (kind < 40) return void say(player, own)
  if (kind < 45) return player.ask("channelLeave", { channel: own })
  const playerId = chance.pick(players)?.id
  player.ask("channelModerate", { channel: own, op: chance.pick(ops), playerId })
}

/** Keeps the server acting while the given condition holds. */
export const keepManaging = (
  simulator: Simulator,
  chance: Chance,
  rules: ChannelRules,
  goesOn: () => boolean
): void => {
  const step = (): void => {
    if (!goesOn()) return
    rules.act()
    simulator.after(chance.integer(100, 1200), step)
  }
  simulator.after(chance.integer(0, 1000), step)
}
