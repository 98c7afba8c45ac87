/** Messages between a runner and its media processes: control only, media never crosses. */
import type { Candidate } from "./media-driver.ts"

/** Where a media process serves. */
export interface MediaOptions {
  /** 0 for any free port. */
  readonly port: number
  readonly publicIp?: string
}

/** A message to a media process. */
export type MediaRequest =
  /** Serves from now on. */
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

/** A message from a media process. */
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
