/** Gates of the share tools: a tool that the config turns off answers before anything is read. */
import { HttpApiMiddleware } from "effect/http-api"
import type { CurrentActor, CurrentEnvironment } from "../auth.ts"
import { ShareLinksDisabled, ShareTrackingDisabled, wire } from "../errors/codes.ts"

/** Middleware that answers 404 `share_links_disabled` while `share.links` is off. */
export class ShareLinksGate extends HttpApiMiddleware.Service<
  ShareLinksGate,
  { requires: CurrentEnvironment }
>()("rpc/share/gates/ShareLinksGate", { error: wire(ShareLinksDisabled) }) {}

/** Middleware that answers 404 `share_tracking_disabled` while `share.tracking` is off. */
export class ShareTrackingGate extends HttpApiMiddleware.Service<
  ShareTrackingGate,
  { requires: CurrentEnvironment }
>()("rpc/share/gates/ShareTrackingGate", { error: wire(ShareTrackingDisabled) }) {}

/** The same for what was counted: a secret key is refused, and the dashboard can always read. */
export class ShareStatsGate extends HttpApiMiddleware.Service<
  ShareStatsGate,
  { requires: CurrentActor | CurrentEnvironment }
>()("rpc/share/gates/ShareStatsGate", { error: wire(ShareTrackingDisabled) }) {}
