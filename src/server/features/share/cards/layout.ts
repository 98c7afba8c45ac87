/** How a card looks: the texts of a card as a tree of boxes, 1200 by 600 pixels. */
import type { Node } from "@takumi-rs/core"
import { share as limits } from "#rpc/limits"

/** Everything that a card shows. Equal cards have equal pictures. */
export interface Card {
  /** The name of the app. */
  readonly title: string
  /** A short line above the score, like `Can you beat`. */
  readonly line: string | undefined
  readonly score: string | undefined
  /** The name of the player. */
  readonly name: string | undefined
  readonly theme: { readonly background: string; readonly accent: string; readonly text: string }
}

const padding = 72

/** The scripts that are written from right to left. */
const rightToLeft =
  /^[^\p{L}]*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/u

const isRightToLeft = (text: string): boolean => rightToLeft.test(text)

/** A text of at most `lines` lines; what does not fit ends in an ellipsis. */
const textOf = (text: string, lines: number, style: Readonly<Record<string, unknown>>): Node => ({
  type: "text",
  text,
  style: {
    width: "100%",
    overflow: "hidden",
    textOverflow: "ellipsis",
    lineClamp: lines,
    overflowWrap: "anywhere",
    direction: isRightToLeft(text) ? "rtl" : "ltr",
    textAlign: isRightToLeft(text) ? "right" : "left",
    ...style
  }
})

/** Digits that fit into the width of a card at each size. */
const scoreSizes = [
  { upTo: 7, pixels: 220 },
  { upTo: 11, pixels: 150 },
  { upTo: 18, pixels: 96 }
] as const
const smallestScore = 64

const scoreSize = (score: string): number =>
  scoreSizes.find(({ upTo }) => score.length <= upTo)?.pixels ?? smallestScore

const body = ({ line, name, score, theme, title }: Card): ReadonlyArray<Node> => {
  const nameNode =
    name === undefined ? [] : [textOf(name, 1, { fontSize: 48, fontWeight: 700, marginTop: 20 })]
  if (score === undefined) {
    return [
      textOf(title, 3, { fontSize: 104, fontWeight: 700, lineHeight: 1.1 }),
      {
        type: "container",
        style: { width: 160, height: 12, backgroundColor: theme.accent, marginTop: 36 }
      },
      ...nameNode
    ]
  }
  return [
    textOf(title, 2, { fontSize: 52, fontWeight: 700, lineHeight: 1.15 }),
    {
      type: "container",
      style: { display: "flex", flexDirection: "column", width: "100%" },
      children: [
        ...(line === undefined ? [] : [textOf(line, 1, { fontSize: 44, fontWeight: 400 })]),
        textOf(score, 1, {
          fontSize: scoreSize(score),
          fontWeight: 700,
          lineHeight: 1.1,
          color: theme.accent
        }),
        ...nameNode
      ]
    }
  ]
}

/** The address under which a background picture is given to the renderer. */
export const backgroundName = "background"

/** A card as the renderer takes it. Over a background picture lies a shade, so that texts stay legible. */
export const cardTree = (card: Card, hasBackground: boolean): Node => {
  const { cardHeightPixels: height, cardWidthPixels: width } = limits
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
          padding,
          color: card.theme.text
        },
        children: [...body(card)]
      }
    ]
  }
}
