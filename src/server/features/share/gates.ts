/** Gates of the share tools that the config turns off. */
import { Effect, Layer } from "effect"
import { CurrentActor } from "#rpc/auth"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import { ShareLinksDisabled, ShareTrackingDisabled } from "#rpc/errors/codes"
import { ShareLinksGate, ShareStatsGate, ShareTrackingGate } from "#rpc/share/gates"
import { makeConfigGate } from "../config/config-gate.ts"

const closedLinks = ({ share }: EnvironmentConfig) =>
  share.links.enabled ? undefined : new ShareLinksDisabled()

const closedTracking = ({ share }: EnvironmentConfig) =>
  share.tracking.enabled ? undefined : new ShareTrackingDisabled()

/** All gates of share tools. */
export const ShareGatesLive = Layer.mergeAll(
  Layer.effect(
    ShareLinksGate,
    Effect.map(makeConfigGate(closedLinks), (gate) => ShareLinksGate.of(gate))
  ),
  Layer.effect(
    ShareTrackingGate,
    Effect.map(makeConfigGate(closedTracking), (gate) => ShareTrackingGate.of(gate))
  ),
  Layer.effect(
    ShareStatsGate,
    Effect.map(makeConfigGate(closedTracking), (gate) =>
      ShareStatsGate.of((handler) =>
        Effect.flatMap(CurrentActor, ({ kind }) => (kind === "developer" ? handler : gate(handler)))
      )
    )
  )
)
