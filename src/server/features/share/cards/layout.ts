/** Layout of cards: the texts of a card as a tree of boxes, 1200 by 600 pixels. */
import type { Node } from "@takumi-rs/core"
import { share } from "#rpc/share/limits"

/** Content of a card. Equal cards have equal pictures. */
export interface Card {
  /** The name of the app. */
  readonly title: string
  /** Short line above the score, like `Can you beat`. */
  readonly line: string | undefined
  readonly score: string | undefined
  /** The name of the player. */
  readonly name: string | undefined
  readonly theme: { readonly background: string; readonly accent: string; readonly text: string }
}

const padding = 64

/** Text whose first letter belongs to a right-to-left script. */
const rightToLeft =
  /^[^\p{L}]*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/u

type Side = "left" | "right"

/** Box of a text with at most `lines` lines at a side of the card. An ellipsis ends truncated text. */
const textOf = (
  text: string,
  lines: number,
  side: Side,
  style: Readonly<Record<string, unknown>>
): Node => ({
  type: "text",
  text,
  style: {
    width: "100%",
    flexShrink: 0,
    overflow: "hidden",
    textOverflow: "ellipsis",
    lineClamp: lines,
    lineHeight: 1.25,
    overflowWrap: "anywhere",
    direction: rightToLeft.test(text) ? "rtl" : "ltr",
    textAlign: side,
    ...style
  }
})

/** Font sizes of a score by its maximum number of characters. A longer score uses `smallestScore`. */
const scoreSizes = [
  { upTo: 7, pixels: 200 },
  { upTo: 11, pixels: 150 },
  { upTo: 18, pixels: 96 }
] as const
const smallestScore = 64

const scoreSize = (score: string): number =>
  scoreSizes.find(({ upTo }) => score.length <= upTo)?.pixels ?? smallestScore

const bold = { fontWeight: 700 } as const

/** Body of an app's card: its name, with a bar under it. */
const appBody = ({ name, theme, title }: Card, side: Side): ReadonlyArray<Node> => [
  textOf(title, 3, side, { ...bold, fontSize: 104, lineHeight: 1.15 }),
  {
    type: "container",
    style: { width: 160, height: 12, backgroundColor: theme.accent, marginTop: 28 }
  },
  ...(name === undefined ? [] : [textOf(name, 1, side, { ...bold, fontSize: 48, marginTop: 28 })])
]

/** Body of a score card: the app's name above, the score and the player's name below. */
const scoreBody = (
  { line, name, theme, title }: Card,
  score: string,
  side: Side
): ReadonlyArray<Node> => [
  textOf(title, 2, side, { ...bold, fontSize: 48 }),
  {
    type: "container",
    style: { display: "flex", flexDirection: "column", width: "100%" },
    children: [
      ...(line === undefined ? [] : [textOf(line, 1, side, { fontSize: 40 })]),
      textOf(score, 1, side, {
        ...bold,
        fontSize: scoreSize(score),
        lineHeight: 1.1,
        color: theme.accent
      }),
      ...(name === undefined ? [] : [textOf(name, 1, side, { ...bold, fontSize: 44 })])
    ]
  }
]

/** Address of the background picture in the renderer. */
export const backgroundName = "background"

/**
 * Returns a card as a tree for the renderer. Shades a background picture, so that texts stay legible.
 */
export const cardTree = (card: Card, hasBackground: boolean): Node => {
  const side = rightToLeft.test(card.title) ? "right" : "left"
  const { cardHeightPixels: height, cardWidthPixels: width } = share
  const cover = { position: "absolute", left: 0, top: 0, width, height } as const
  return {
    type: "container",
    style: { display: "flex", width, height, backgroundColor: card.theme.background },
    children: [
      ...(hasBackground
        ? [
            {
              type: "image",
              src: backgroundName,
              style: { ...cover, objectFit: "cover" }
            } as const,
            {
              type: "container",
              style: { ...cover, backgroundColor: card.theme.background, opacity: 0.55 }
            } as const
          ]
        : []),
      {
        type: "container",
        style: {
          ...cover,
          display: "flex",
          flexDirection: "column",
          justifyContent: card.score === undefined ? "center" : "space-between",
          alignItems: side === "left" ? "flex-start" : "flex-end",
          padding,
          color: card.theme.text
        },
        children: [
          ...(card.score === undefined ? appBody(card, side) : scoreBody(card, card.score, side))
        ]
      }
    ]
  }
}
