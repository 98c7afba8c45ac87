/**
 * Interface of a WebRTC library for the media server: five methods, so that the library is replaceable.
 * The server always makes the offer: one line that receives the microphone, and one line that sends for
 * each slot.
 */

/** ICE candidate of the media server. */
export interface Candidate {
  readonly candidate: string
  readonly sdpMid: string
}

export interface PeerEvents {
  /** Called when an RTP or RTCP packet arrives. */
  readonly onPacket: (packet: Buffer) => void
  readonly onState: (state: "connected" | "disconnected" | "closed") => void
}

/** Connection to one member. */
export interface MediaPeer {
  /** Creates the offer, without candidates. */
  readonly offer: () => Promise<string>
  /** Applies the answer; throws if it is unusable. Returns the server's candidates for the member. */
  readonly answer: (sdp: string) => ReadonlyArray<Candidate>
  /** Sends a packet to the member. Drops it while the connection is not open. */
  readonly send: (slot: number, packet: Buffer) => void
  readonly close: () => void
}

export interface MediaDriver {
  readonly open: (session: string, ssrcs: ReadonlyArray<number>, events: PeerEvents) => MediaPeer
}

/** Media line of the offer on which the member sends. */
export const microphoneMid = "mic"

export const slotMid = (slot: number): string => `s${slot}`

const without = /^a=(?:candidate:|end-of-candidates|remote-candidates:).*(?:\r\n|\r|\n)?/gim

/**
 * Removes all candidates. An offer has none, since a browser that knows them connects before the server
 * has its answer. The server needs none. It learns the member's address from its first packet, and
 * never sends to an address that a client has named.
 */
export const withoutCandidates = (sdp: string): string => sdp.replace(without, "")

/** Whether an answer has the lines of the offer: audio only, one for the microphone, one per slot. */
export const fitsOffer = (sdp: string, slots: number): boolean => {
  const lines = sdp.match(/^m=.*$/gm) ?? []
  return lines.length === slots + 1 && lines.every((line) => line.startsWith("m=audio "))
}
