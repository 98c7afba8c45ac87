/** Section `share` of the environment config; everything is off by default. */
import { Schema } from "effect"
import { list, optional, section, string, toggle, withDefault } from "./fields.ts"
import { configLimits } from "./limits.ts"
import { deploymentPath, imageSource, text } from "./text.ts"

const color = (value: string, description: string) =>
  withDefault(
    string(description)
      .annotate({ default: value })
      .check(Schema.isPattern(/^#[0-9a-fA-F]{6}$/u, { message: "must be a color like #ffcc33" })),
    value
  )

const Images = section("Rendered card images.", {
  enabled: toggle("Render card images of 1200 by 600 pixels."),
  title: text("The app's name drawn on the card.", configLimits.cardTitleMaxCharacters),
  background: deploymentPath("PNG or JPEG in the deployment, up to 2 MB; 2:1 works best."),
  font: deploymentPath("TTF or OTF in the deployment, up to 10 MB; built in is Latin only."),
  theme: optional(
    section("The colors of the card.", {
      background: color("#0f1115", "The card's background."),
      accent: color("#ffcc33", "The accent color, used for the score."),
      text: color("#ffffff", "The text.")
    })
  )
})

const handle = (description: string, at: "" | "@") =>
  Schema.optionalKey(
    string(description).check(
      Schema.isPattern(new RegExp(`^${at}[A-Za-z0-9_]{1,15}$`, "u"), {
        message: `must be a handle ${at === "@" ? "like @studio" : "without the @, like studio"}`
      })
    )
  )

const Tags = section("Card texts. Card tags need an image: tags.image or images.enabled.", {
  enabled: toggle("No longer used: the service adds no tags to pages."),
  title: text("The card's title."),
  description: text("The card's description."),
  imageAlt: text("Alternative text of the card's image."),
  image: imageSource("A fixed card image; otherwise the rendered default card."),
  site: handle("The site's handle on the card.", "@")
})

const Hashtag = string("A hashtag without the #.").check(
  Schema.isPattern(
    new RegExp(`^[\\p{L}\\p{M}\\p{N}_]{1,${configLimits.textMaxCharacters}}$`, "u"),
    {
      message: "must consist of letters, digits and underscores, without the #"
    }
  )
)

const Links = section("Share links.", {
  enabled: toggle("Issue share ids (query parameter ks) and let challenges be restored."),
  text: text("The default post text; {score} is replaced.", configLimits.linksTextMaxCharacters),
  hashtags: list("Added to the post.", Hashtag, configLimits.hashtagsMax),
  via: handle("A handle added to the post.", "")
})

const Tracking = section("Visit tracking.", {
  enabled: toggle("Count visits, new players and plays per share id (aggregates only).")
})

const InAppBrowser = section("Leaving an in-app browser.", {
  enabled: toggle("Allow continuing as the same guest in another browser.")
})

/** Section `share`. */
export const Share = section("Share tools; everything is off by default.", {
  images: optional(Images),
  tags: optional(Tags),
  links: optional(Links),
  tracking: optional(Tracking),
  inAppBrowser: optional(InAppBrowser)
})
