/** Error codes of share tools. */
import { coded } from "./wire.ts"

/** The share tool is off in the config. Hide it in the app. */
export class ShareImagesDisabled extends coded<ShareImagesDisabled>()(
  "share_images_disabled",
  404,
  "Share images are turned off."
) {}

/** The share tool is off in the config. Hide it in the app. */
export class ShareTagsDisabled extends coded<ShareTagsDisabled>()(
  "share_tags_disabled",
  404,
  "Share tags are turned off."
) {}

/** The share tool is off in the config. Hide it in the app. */
export class ShareLinksDisabled extends coded<ShareLinksDisabled>()(
  "share_links_disabled",
  404,
  "Share links are turned off."
) {}

/** The share tool is off in the config. Hide it in the app. */
export class ShareTrackingDisabled extends coded<ShareTrackingDisabled>()(
  "share_tracking_disabled",
  404,
  "Share tracking is turned off."
) {}

/** Session transfer is off: `share.inAppBrowser` of the config. Hide it in the app. */
export class ShareInAppBrowserDisabled extends coded<ShareInAppBrowserDisabled>()(
  "share_inAppBrowser_disabled",
  404,
  "Continuing in another browser is turned off."
) {}
