/** The part of WebRTC that the mesh of a peer-to-peer room uses. Browsers have it. */
import type { IceServers, IceTransportPolicy } from "./wire.ts"

/** An `RTCConfiguration`, and the expiry of its credentials (ISO 8601 UTC). */
export interface RtcServers {
  readonly iceServers: Array<{ urls: Array<string>; username?: string; credential?: string }>
  readonly iceTransportPolicy: IceTransportPolicy
  readonly expiresAt: IceServers["expiresAt"]
}

interface PeerEvent {
  readonly type: string
}

/** An `RTCDataChannel`. */
export interface DataChannelLike {
  readonly readyState: string
  readonly bufferedAmount: number
  send(text: string): void
  addEventListener(
    name: "open" | "message" | "close",
    listener: (event: PeerEvent & { readonly data?: unknown }) => void
  ): void
}

/** An SDP offer or answer. */
export type PeerDescription = {
  readonly type: "offer" | "answer" | "pranswer" | "rollback"
  readonly sdp?: string
}

/** An `RTCPeerConnection`. */
export interface PeerConnectionLike {
  readonly connectionState: string
  createDataChannel(
    label: string,
    options: {
      readonly negotiated: boolean
      readonly id: number
      readonly ordered?: boolean
      readonly maxRetransmits?: number
    }
  ): DataChannelLike
  createOffer(): Promise<PeerDescription>
  createAnswer(): Promise<PeerDescription>
  setLocalDescription(description: PeerDescription): Promise<void>
  setRemoteDescription(description: PeerDescription): Promise<void>
  addIceCandidate(candidate: object): Promise<void>
  close(): void
  addEventListener(
    name: "icecandidate" | "connectionstatechange",
    listener: (event: PeerEvent & { readonly candidate?: { toJSON(): object } | null }) => void
  ): void
}

/** The class of a platform: `RTCPeerConnection`. */
export type PeerConnectionClass = new (servers: RtcServers) => PeerConnectionLike
