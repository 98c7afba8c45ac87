/** What one environment may take of a media process, while another one talks. */
import { assert, describe, it } from "@effect/vitest"
import type { MediaDriver } from "#server/features/voice/media-driver"
import { mediaLimits } from "#server/features/voice/media-limits"
import { MediaRooms } from "#server/features/voice/media-rooms"
import { PacketShares } from "#server/features/voice/packet-shares"
import { tonePacket } from "../../support/voice-peer.ts"

const tickMillis = 100
/** Packets of a speaker between two ticks: one in 20 ms. */
const speech = 5

/** An answer with the lines of every offer. */
const sdp = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n".repeat(mediaLimits.slots + 1)

/** A media process without a network, on virtual time. */
const makeProcess = () => {
  let now = 0
  const sequences = new Map<string, number>()
  const receive = new Map<string, (packet: Buffer) => void>()
  const heard = new Map<string, number>()
  const failed: Array<string> = []
  const driver: MediaDriver = {
    open: (session, _ssrcs, events) => {
      receive.set(session, events.onPacket)
      queueMicrotask(() => events.onState("connected"))
      return {
        offer: () => Promise.resolve(""),
        answer: () => [],
        send: () => heard.set(session, (heard.get(session) ?? 0) + 1),
        close: () => receive.delete(session)
      }
    }
  }
  const rooms = new MediaRooms(
    driver,
    (report) => {
      if (report.t === "failed") failed.push(report.session)
    },
    () => now
  )
  return {
    rooms,
    failed,
    heardBy: (session: string) => heard.get(session) ?? 0,
    /** Members of one call with open microphones. */
    join: (call: number, environmentId: string, size: number) => {
      const sessions = Array.from({ length: size }, (_, i) => `${call}-${i}`)
      for (const session of sessions) {
        rooms.handle({ t: "open", call, environmentId, session })
        rooms.handle({ t: "answer", id: 1, call, session, gen: 1, sdp })
        rooms.handle({ t: "microphone", call, session, open: true })
      }
      return sessions
    },
    send: (session: string, packets: number, level = 20) => {
      for (let i = 0; i < packets; i++) {
        const sequence = (sequences.get(session) ?? 0) + 1
        sequences.set(session, sequence)
        receive.get(session)?.(tonePacket({ ssrc: 77, sequence, level }))
      }
    },
    tick: () => {
      now += tickMillis
      rooms.tick()
    }
  }
}

describe("the packets of a media process", () => {
  it("leaves a fifth of a media process's packets when one environment takes all that it may", () => {
    const shares = new PacketShares({ perSecond: 1000, share: 4 })
    const takeAll = (environmentId: string) => {
      let packets = 0
      while (shares.take(environmentId, 1)) packets += 1
      return packets
    }
    assert.strictEqual(takeAll("env_a"), 0, "before the first refill there are none")
    assert.deepStrictEqual([...shares.refill(100)], ["env_a"])
    assert.strictEqual(takeAll("env_a"), 80)
    assert.strictEqual(takeAll("env_b"), 16, "four fifths of those that are left")
    assert.deepStrictEqual([...shares.refill(100)].toSorted(), ["env_a", "env_b"])
    assert.isFalse(shares.take("env_a", 81), "all or none")
    assert.isTrue(shares.take("env_a", 80))
    assert.deepStrictEqual([...shares.refill(60_000)], ["env_a"])
    assert.strictEqual(takeAll("env_a"), 160, "a pause gives no more than two ticks")
  })

  it("gives two environments that take all they can 44 % each of a media process's packets", () => {
    const shares = new PacketShares({ perSecond: 1000, share: 4 })
    shares.refill(100)
    const taken = { env_a: 0, env_b: 0 }
    for (let packet = 0; packet < 100; packet++) {
      if (shares.take("env_a", 1)) taken.env_a += 1
      if (shares.take("env_b", 1)) taken.env_b += 1
    }
    assert.deepStrictEqual(taken, { env_a: 44, env_b: 44 })
    assert.deepStrictEqual([...shares.refill(100)].toSorted(), ["env_a", "env_b"])
    assert.isTrue(shares.take("env_a", 80), "the next refill shares all packets again")
  })

  /** Packets that two members hear of a third while a hundred of another environment send this many. */
  const heardDuring = (flood: number) => {
    const process = makeProcess()
    const [speaker = "", listener = "", ...flooders] = process.join(1, "env_a", 100)
    const [ada = "", bob = "", cat = ""] = process.join(2, "env_b", 3)
    for (let i = 0; i < 20; i++) {
      process.tick()
      process.send(ada, 2)
      for (const each of flooders) process.send(each, flood)
      process.send(speaker, speech)
      process.send(ada, speech - 2)
    }
    const own = [bob, cat].map(process.heardBy)
    return { own, other: process.heardBy(listener), failed: process.failed, flooders }
  }

  it("delivers the packets of one environment, whatever another one floods the media process with", () => {
    const quiet = heardDuring(0)
    assert.isAbove(quiet.own[0] ?? 0, 50)
    // Each flooder stays below what cuts off a member of an environment within its share.
    const flooded = heardDuring(mediaLimits.packetsPerTick - 1)
    assert.deepStrictEqual(flooded.own, quiet.own)
    assert.sameMembers(flooded.failed, flooded.flooders, "the flooders are cut off")
    assert.isAbove(flooded.other, 50, "the others of their environment go on")
  })

  it("drops packets when calls are too many for one media process, and cuts nobody off", () => {
    const process = makeProcess()
    const calls = 5
    const sessions = Array.from({ length: calls }, (_, call) =>
      process.join(call, "env_a", 100)
    ).flat()
    const perTick = (mediaLimits.processPackets.perSecond * tickMillis) / 1000
    const counts = Array.from({ length: 10 }, () => {
      process.tick()
      for (const each of sessions) process.send(each, speech, 10)
      return process.rooms.takeSent()["env_a"] ?? 0
    })
    assert.isAbove(Math.max(...counts), perTick / 2)
    assert.isAtMost(Math.max(...counts), perTick * 0.8)
    assert.isEmpty(process.failed)
  })
})
