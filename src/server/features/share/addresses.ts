/**
 * Public addresses of an app's links and card images. A link opens the app: the hosted one, by a page of the
 * service on its origin that has the card; else its first allowed origin, else the service's page `/s/<id>`.
 */
import { Effect } from "effect"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import { reservedPaths } from "#rpc/hosting/paths"
import { paths } from "#rpc/paths"
import { Settings } from "#server/platform/settings/settings"
import type { AppRow } from "#sql/hosting/apps"
import { labelOf } from "../hosting/addresses.ts"
import { makeLiveApp } from "../hosting/live-app.ts"

/** First allowed origin that names a page rather than a pattern or an app. */
const pageOrigin = ({ web }: EnvironmentConfig): string | undefined =>
  web.allowedOrigins.find((origin) => /^https?:\/\/[^*]+$/.test(origin))

/** Builds the addresses of one environment. */
export const makeAddresses = Effect.gen(function* () {
  const { baseUrl } = yield* Settings
  const liveApp = yield* makeLiveApp
  return Effect.fnUntraced(function* (environment: AppRow, config: EnvironmentConfig) {
    const live = yield* liveApp(environment.slug, environment.name)
    const hosted = live === undefined ? undefined : new URL(live.url).origin
    const origin = hosted ?? pageOrigin(config)
    const images = `${baseUrl}/v1/share/images/${labelOf(environment.slug, environment.name)}`
    return {
      /** Address of the app; undefined if the service knows no page of it. */
      app: origin,
      link: (id: string): string => {
        if (hosted !== undefined) return `${hosted}/${reservedPaths.shared}?ks=${id}`
        return origin === undefined ? `${baseUrl}${paths.shared}/${id}` : `${origin}/?ks=${id}`
      },
      image: (id: string): string => `${images}/${id}.png`,
      imageTemplate: `${images}/{shareId}.png`,
      defaultImage: `${images}/card.png`
    }
  })
})
