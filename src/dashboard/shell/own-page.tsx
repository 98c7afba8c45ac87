/** The frame around the developer's own pages, which belong to no project. */
import type { ComponentChildren } from "preact"
import { texts } from "../core/texts.ts"
import { Brand, UserMenu } from "./frame.tsx"

const { pages: own } = texts

const pages = ["projects", "money", "account"] as const

export const OwnPage = ({
  children,
  page
}: {
  readonly page: (typeof pages)[number]
  readonly children: ComponentChildren
}) => (
  <div class="own-page">
    <header class="top">
      <a class="brand" href="/dashboard" aria-label={texts.product}>
        <Brand />
      </a>
      <nav class="segment" aria-label={own.nav}>
        {pages.map((name) => (
          <a
            key={name}
            href={`/dashboard/${name}`}
            aria-current={name === page ? "page" : undefined}
          >
            {own[name]}
          </a>
        ))}
      </nav>
      <span class="grow" />
      <UserMenu />
    </header>
    <main class="main stack" id="main">
      {children}
    </main>
  </div>
)
