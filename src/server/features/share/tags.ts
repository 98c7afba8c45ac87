/** Card tags of an app, for the head of its pages. */
import { Effect, Option } from "effect"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import { ShareTagsDisabled } from "#rpc/errors/codes"
import type { EnvironmentId } from "#rpc/ids"
import type { ShareTags } from "#rpc/share/api"
import type { AppRow } from "#sql/hosting/apps"
import { makeAddresses } from "./addresses.ts"
import { makeEnvironmentOf, makeFind } from "./links.ts"
import { cardTags, htmlOf, textIn } from "./texts.ts"

/** Returns the card's title: that of the tags, else that on the image, else the project's name. */
const titleOf = (
  { share: { images, tags } }: EnvironmentConfig,
  { projectName }: AppRow,
  languages: ReadonlyArray<string>
): string => textIn(tags.title ?? images.title ?? projectName, languages)

/** Builds the tags. An unknown link gets those of the app. */
export const makeTags = Effect.gen(function* () {
  const addressesOf = yield* makeAddresses
  const environmentOf = yield* makeEnvironmentOf
  const find = yield* makeFind
  return Effect.fn("Share.tags")(function* (
    environmentId: EnvironmentId,
    ks: string | undefined,
    languages: ReadonlyArray<string>
  ) {
    const found = yield* environmentOf(environmentId)
    const { config } = found
    const { images, tags } = config.share
    if (Option.isNone(found.environment)) return yield* new ShareTagsDisabled()
    const environment = found.environment.value
    const addresses = yield* addressesOf(environment, config)
    const fixed = fixedImage(tags.image, addresses.app)
    if (fixed === undefined && !images.enabled) return yield* new ShareTagsDisabled()
    const link = ks === undefined ? Option.none() : yield* find(environmentId, ks)
    const defaultImage = fixed ?? addresses.defaultImage
    const shared = images.enabled && Option.isSome(link) ? link.value.id : undefined
    const image = shared === undefined ? defaultImage : addresses.image(shared)
    const inLanguage = (text: typeof tags.title) =>
      text === undefined ? undefined : textIn(text, languages)
    const title = titleOf(config, environment, languages)
    const list = cardTags(
      {
        title,
        description: inLanguage(tags.description),
        imageAlt: inLanguage(tags.imageAlt),
        site: tags.site
      },
      { url: image, isRendered: image !== fixed }
    )
    const built: ShareTags & { readonly title: string } = {
      title,
      html: htmlOf(list),
      tags: list,
      image,
      defaultImage,
      shareImageTemplate: images.enabled ? addresses.imageTemplate : null
    }
    return built
  })
})

/** Fixed image of the config: an `https` address, or a file of the app. */
const fixedImage = (image: string | undefined, app: string | undefined): string | undefined => {
  if (image === undefined || image.startsWith("https://")) return image
  return app === undefined ? undefined : new URL(image, `${app}/`).href
}
