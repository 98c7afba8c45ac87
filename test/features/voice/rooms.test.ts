/** What a media process reports of its calls. */
import { assert, it } from "@effect/vitest"
import type { MediaDriver, PeerEvents } from "#server/features/voice/media-driver"
import type { MediaReport } from "#server/features/voice/media-messages"
import { MediaRooms } from "#server/features/voice/media-rooms"

it("a media process reports who has connected, but no connection that was replaced", () => {
  const peers: Array<PeerEvents> = []
  const driver: MediaDriver = {
    open: (_session, _ssrcs, events) => {
      peers.push(events)
      return {
        offer: () => Promise.resolve(""),
        answer: () => [],
        send: () => undefined,
        close: () => undefined
      }
    }
  }
  const reports: Array<MediaReport> = []
  const rooms = new MediaRooms(
    driver,
    (report) => void reports.push(report),
    () => 0
  )
  rooms.handle({ t: "open", call: 1, environmentId: "env_a", session: "s1" })
  // An answer that fits no offer: the member gets another connection.
  rooms.handle({ t: "answer", id: 2, call: 1, session: "s1", gen: 1, sdp: "" })
  const connected = () => reports.filter(({ t }) => t === "connected")
  peers[0]?.onState("connected")
  assert.isEmpty(connected())
  peers[1]?.onState("connected")
  assert.deepStrictEqual(connected(), [{ t: "connected", session: "s1" }])
})
