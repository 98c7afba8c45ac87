/** Messages between a runner and its media processes. They carry control only, never media. */
import type { Candidate } from "./media-driver.ts"

/** Address and port of a media process. */
export interface MediaOptions {
  /** UDP port; 0 for any free port. */
  readonly port: number
  readonly publicIp?: string
}

/** Message to a media process. */
export type MediaRequest =
  /** Starts serving. */
  | ({ readonly t: "bind" } & MediaOptions)
  | {
      readonly t: "open"
      readonly call: number
      /** The environment of the call. */
      readonly environmentId: string
      readonly session: string
    }
  | {
      readonly t: "answer"
      readonly id: number
      readonly call: number
      readonly session: string
      readonly gen: number
      readonly sdp: string
    }
  | {
      readonly t: "microphone"
      readonly call: number
      readonly session: string
      readonly open: boolean
    }
  | { readonly t: "hint"; readonly call: number; readonly session: string }
  | { readonly t: "close"; readonly call: number; readonly session: string }
  | { readonly t: "end"; readonly call: number }

/** Message from a media process. */
export type MediaReport =
  | { readonly t: "ready" }
  | { readonly t: "log"; readonly level: string; readonly message: string }
  | {
      readonly t: "offered"
      readonly call: number
      readonly session: string
      readonly gen: number
      readonly sdp: string
      readonly publishMid: string
      readonly slots: ReadonlyArray<string>
    }
  | {
      readonly t: "answered"
      readonly id: number
      readonly candidates: ReadonlyArray<Candidate>
    }
  | { readonly t: "connected"; readonly session: string }
  | { readonly t: "refused"; readonly id: number; readonly message: string }
  | {
      readonly t: "speaking"
      readonly call: number
      readonly slots: Readonly<Record<string, string | null>>
    }
  | { readonly t: "failed"; readonly call: number; readonly session: string }
  | {
      readonly t: "load"
      /** Packets sent in the last second, by environment. */
      readonly forwards: Readonly<Record<string, number>>
      readonly residentBytes: number
    }
