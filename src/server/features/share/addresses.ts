/**
 * Public addresses of an app's links and card images. A link opens the app: its first allowed origin, or
 * the service's own page `/s/<id>` where the config names none.
 */
import { Effect } from "effect"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import { paths } from "#rpc/paths"
import { Settings } from "#server/platform/settings/settings"
import type { LabelledEnvironment } from "#sql/share/links"

/** The label of an environment in host names and paths: the slug, or `<slug>--dev`. */
export const labelOf = ({ name, slug }: Pick<LabelledEnvironment, "name" | "slug">): string =>
  name === "production" ? slug : `${slug}--dev`

const developmentSuffix = "--dev"

/** The environment that a label names; undefined for a text that is no label. */
export const parseLabel = (
  label: string
): Pick<LabelledEnvironment, "name" | "slug"> | undefined => {
  if (!/^[a-z0-9][a-z0-9-]*$/.test(label)) return undefined
  return label.endsWith(developmentSuffix)
    ? { slug: label.slice(0, -developmentSuffix.length), name: "development" }
    : { slug: label, name: "production" }
}

/** The first allowed origin that names a page rather than a pattern or an app. */
const pageOrigin = ({ web }: EnvironmentConfig): string | undefined =>
  web.allowedOrigins.find((origin) => /^https?:\/\/[^*]+$/.test(origin))

/** Builds the addresses of one environment. */
export const makeAddresses = Effect.gen(function* () {
  const { baseUrl } = yield* Settings
  return (environment: LabelledEnvironment, config: EnvironmentConfig) => {
    const origin = pageOrigin(config)
    const images = `${baseUrl}/v1/share/images/${labelOf(environment)}`
    return {
      /** The app itself; undefined if the service knows no page of it. */
      app: origin,
      link: (id: string): string =>
        origin === undefined ? `${baseUrl}${paths.shared}/${id}` : `${origin}/?ks=${id}`,
      image: (id: string): string => `${images}/${id}.png`,
      imageTemplate: `${images}/{shareId}.png`,
      defaultImage: `${images}/card.png`
    }
  }
})
