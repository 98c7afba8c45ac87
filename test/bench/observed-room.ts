/**
 * A room under observation. One player changes its state without pause and records when each change was
 * acknowledged; another sends messages, so that their order can be checked. Both are connected to
 * runners that survive. A third player can be connected to the runner that will fail.
 */
import { type Frame, member, PlayerSocket, type Seat } from "./player-socket.ts"

/** How often each of the two acts. */
export const everyMillis = 20

/** A change that the room acknowledged. */
interface Granted {
  readonly change: number
  readonly at: number
}

/**
 * A player on the runner that will fail. A change that it gets acknowledged after that runner came back
 * must reach the others, too: otherwise a runner that no longer owns the room acknowledged it.
 */
class Witness {
  readonly id: string
  readonly #socket: PlayerSocket
  readonly #acting: NodeJS.Timeout
  #step = 0
  granted: Granted | undefined

  constructor(id: string, socket: PlayerSocket) {
    this.id = id
    this.#socket = socket
    this.#acting = setInterval(() => this.#act(), everyMillis)
  }

  #act(): void {
    const change = (this.#step += 1)
    this.#socket.ask({ t: "setMyState", patch: { step: change } }, (reply) => {
      if (reply["ok"] === true) this.granted = { change, at: performance.now() }
    })
  }

  stop(): void {
    clearInterval(this.#acting)
  }

  end(): void {
    this.stop()
    this.#socket.close()
  }
}

/** What one listener sees of the room: each `room_joined` restarts the sequence, gaps between are faults. */
class Listener {
  readonly faults: Array<string> = []
  /** The writer's counter as of the latest snapshot after a fault, with the time it came. */
  readonly snapshots: Array<{ readonly at: number; readonly change: number }> = []
  readonly #talker: string
  /** The latest acknowledged step of the witness. */
  witnessed = 0
  witness: string | undefined
  #version: number | undefined
  #spoken: number | undefined

  constructor(talker: string) {
    this.#talker = talker
  }

  hear(frame: Frame): void {
    switch (frame["t"]) {
      case "room_joined":
        this.#version = Number(member(frame, "room", "version"))
        this.#spoken = undefined
        this.#seeWitness(frame)
        this.snapshots.push({
          at: performance.now(),
          change: Number(member(frame, "room", "state", "change") ?? 0)
        })
        return
      case "state":
        if (this.#version !== undefined && frame["version"] !== this.#version + 1) {
          this.faults.push(`version ${this.#version} was followed by ${String(frame["version"])}`)
        }
        this.#version = Number(frame["version"])
        return
      case "message": {
        if (frame["from"] !== this.#talker) return
        const spoken = Number(frame["data"])
        if (this.#spoken !== undefined && spoken !== this.#spoken + 1) {
          this.faults.push(`message ${this.#spoken} was followed by ${spoken}`)
        }
        this.#spoken = spoken
        return
      }
      case "player_state":
        if (frame["playerId"] === this.witness) {
          this.witnessed = Number(member(frame, "patch", "step"))
        }
        return
      case "player_joined":
        if (member(frame, "player", "id") !== this.witness) this.faults.push(JSON.stringify(frame))
        return
      case "player_left":
        if (frame["playerId"] !== this.witness) this.faults.push(JSON.stringify(frame))
        return
      case "room_closed":
        this.faults.push(JSON.stringify(frame))
    }
  }

  #seeWitness(joined: Frame): void {
    const players = member(joined, "room", "players")
    const seen = Array.isArray(players)
      ? players.find((player) => member(player, "id") === this.witness)
      : undefined
    if (seen !== undefined) this.witnessed = Number(member(seen, "state", "step") ?? 0)
  }
}

/** The outcome for a room whose runner failed. */
export interface Outcome {
  /** The longest time without an acknowledged change. */
  readonly silenceMillis: number
  /** The age at the fault of the oldest acknowledged change that was lost; 0 means none was lost. */
  readonly lostMillis: number
  readonly faults: ReadonlyArray<string>
}

export class ObservedRoom {
  readonly roomId: string
  readonly #writer: PlayerSocket
  readonly #talker: PlayerSocket
  readonly #listener: Listener
  readonly #granted: Array<Granted>
  readonly #acting: NodeJS.Timeout
  #change = 0
  #spoken = 0
  #witness: Witness | undefined

  private constructor(
    roomId: string,
    writer: PlayerSocket,
    talker: PlayerSocket,
    listener: Listener
  ) {
    this.roomId = roomId
    this.#writer = writer
    this.#talker = talker
    this.#listener = listener
    this.#granted = []
    this.#acting = setInterval(() => this.#act(), everyMillis)
  }

  /** Opens a room and begins to act in it. */
  static async open(writer: Seat, talker: Seat): Promise<ObservedRoom> {
    const listener = new Listener(talker.id)
    const hears = await PlayerSocket.open(writer, (frame) => listener.hear(frame))
    const talks = await PlayerSocket.open(talker, () => undefined)
    const created = await hears.request({ t: "create", mode: "default" })
    if (created["ok"] !== true) throw new Error(`could not create: ${JSON.stringify(created)}`)
    const roomId = String(member(created, "data", "roomId"))
    const joined = await talks.request({ t: "join", roomId })
    if (joined["ok"] !== true) throw new Error(`could not join: ${JSON.stringify(joined)}`)
    listener.faults.splice(0)
    listener.snapshots.splice(0)
    return new ObservedRoom(roomId, hears, talks, listener)
  }

  /** Seats a player on the runner that will fail. */
  async addWitness(seat: Seat): Promise<void> {
    this.#listener.witness = seat.id
    const socket = await PlayerSocket.open(seat, () => undefined)
    await socket.request({ t: "join", roomId: this.roomId })
    this.#witness = new Witness(seat.id, socket)
  }

  /** Stops the witness, so that its acknowledged steps can be compared with what others received. */
  stopWitness(): void {
    this.#witness?.stop()
  }

  /** Changes of the witness acknowledged after this moment that no other player received. */
  #unheard(after: number): ReadonlyArray<string> {
    const granted = this.#witness?.granted
    if (granted === undefined || granted.at < after) return []
    const { witnessed } = this.#listener
    return granted.change > witnessed
      ? [`step ${granted.change} was granted by a stale owner; the others heard ${witnessed}`]
      : []
  }

  /** Starts a trial: discards earlier observations. */
  begin(): void {
    this.#granted.splice(0)
    this.#listener.faults.splice(0)
    this.#listener.snapshots.splice(0)
  }

  /** Whether a change requested after this moment has been acknowledged. */
  grantedSince(at: number): boolean {
    const last = this.#granted.at(-1)
    return last !== undefined && last.at > at
  }

  /** What happened since `begin`; the fault was at `faultAt`, a frozen runner resumed at `backAt`. */
  outcome(faultAt: number, backAt: number): Outcome {
    let silenceMillis = 0
    let before = faultAt
    for (const { at } of this.#granted) {
      if (at < faultAt) continue
      silenceMillis = Math.max(silenceMillis, at - before)
      before = at
    }
    const closed = [this.#writer, this.#talker].filter((socket) => socket.closed !== undefined)
    return {
      silenceMillis,
      lostMillis: this.#lost(faultAt),
      faults: [
        ...this.#listener.faults,
        ...this.#unheard(backAt),
        ...closed.map((socket) => `a surviving socket was closed with ${socket.closed ?? 0}`)
      ]
    }
  }

  /** Disconnects the witness before its runner stops. */
  removeWitness(): void {
    this.#witness?.end()
    this.#witness = undefined
  }

  end(): void {
    clearInterval(this.#acting)
    this.#writer.close()
    this.#talker.close()
  }

  /** A snapshot older than an acknowledged change has lost the difference. */
  #lost(faultAt: number): number {
    let lost = 0
    for (const snapshot of this.#listener.snapshots) {
      const forgotten = this.#granted.find(
        ({ at, change }) => at < snapshot.at && change > snapshot.change
      )
      if (forgotten !== undefined) lost = Math.max(lost, faultAt - forgotten.at)
    }
    return lost
  }

  #act(): void {
    const change = (this.#change += 1)
    this.#writer.ask({ t: "setState", patch: { change } }, (reply) => {
      if (reply["ok"] === true) this.#granted.push({ change, at: performance.now() })
    })
    this.#talker.say({ t: "send", type: "talk", data: (this.#spoken += 1) })
  }
}
