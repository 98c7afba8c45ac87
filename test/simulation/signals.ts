/**
 * Signals in peer-to-peer rooms: players send each other candidates with an address of their own and of a
 * relay. After everything has been healthy for a while each signal arrives, and the addresses of children,
 * and those that children would learn, do not.
 */
import type { PlayerRecords } from "./player-records.ts"
import type { Player } from "./player.ts"
import type { Chance } from "./random.ts"
import { own, relay } from "./signal-data.ts"
import type { Simulator } from "./simulator.ts"

const send = (player: Player, to: string, kind: "offer" | "candidate", candidate: string) => {
  const n = player.next()
  player.ask("signal", { to, kind, gen: 1, data: { n, candidate } })
  return n
}

/** Signals a player, who may be in another room or in none. */
export const signal = (chance: Chance, player: Player, players: ReadonlyArray<Player>): void => {
  const to = chance.pick(players)?.id
  if (to === undefined) return
  send(player, to, chance.happens(0.5) ? "offer" : "candidate", chance.happens(0.5) ? own : relay)
}

/** All members of peer-to-peer rooms signal each other; returns a check of what arrived. */
export const signalAll = (
  simulator: Simulator,
  players: ReadonlyArray<Player>,
  records: PlayerRecords
): (() => void) => {
  const isChild = ({ id }: Player) => records.of(id).declaredAgeBand === "child"
  const sent = players.flatMap((from) =>
    players.flatMap((to) => {
      const { view } = from
      if (from === to || view?.transport !== "p2p" || to.view?.id !== view.id) return []
      return [{ from, to, n: send(from, to.id, "offer", `${own}\n${relay}`) }]
    })
  )
  return () => {
    for (const { from, n, to } of sent) {
      const received = to.signals.get(from.id)
      const isHidden = isChild(from) || isChild(to)
      if (received?.n !== n) simulator.fault(`${to.id} did not receive signal ${n} of ${from.id}`)
      else if (received.showsAddress === isHidden) {
        simulator.fault(`${to.id} ${isHidden ? "learns" : "misses"} the address of ${from.id}`)
      }
    }
  }
}
