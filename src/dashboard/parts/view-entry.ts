/** A view of an environment, as the view itself declares it; the navigation lists all. */
import type { ComponentType } from "preact"
import type { IconName } from "./icon.tsx"

export interface ViewEntry {
  /** The last word of its address, and the name of its icon. */
  readonly word: IconName
  readonly text: string
  readonly view: ComponentType
}
