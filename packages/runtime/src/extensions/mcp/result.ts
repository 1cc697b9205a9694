/** What a server answered to a call, as a tool result. Pure.
 *  Invariant: every kind of content has a place or a word that it was left out; nothing but text and pictures that a
 *  provider takes goes to the model; an error of the tool is an error result.
 *  Elsewhere: results that are too long (../context: replacement), the call (server.ts). */

import { type ImageBlock, type Json, type JsonObject, type TextBlock, text } from "@prefork/wire";
import type { Delegated } from "../../ports.ts";
import { isObject } from "./message.ts";

type ResultBlock = TextBlock | ImageBlock;

const PICTURES: readonly string[] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/** What providers take of one picture. */
const MOST_PICTURE = 5_000_000;
const MOST_PICTURES = 10;

export const delegatedOf = (result: JsonObject): Delegated => {
  const { content, structuredContent, isError } = result;
  const given = Array.isArray(content) ? content.filter(isObject) : [];
  const blocks = withFewPictures(given.map(blockOf));
  const structured = structuredContent === undefined ? [] : [text(JSON.stringify(structuredContent))];
  const all = blocks.length > 0 ? blocks : structured;
  return {
    text: all.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n"),
    content: all,
    ...(isError === true ? { isError } : {}),
  };
};

const blockOf = (block: JsonObject): ResultBlock => {
  switch (block.type) {
    case "text":
      return text(textOf(block.text));
    case "image":
      return pictureOf(block) ?? leftOut("a picture that cannot be shown", block.mimeType);
    case "resource": {
      const { resource } = block;
      if (!isObject(resource)) return leftOut("a resource", undefined);
      const { uri, text: words, mimeType } = resource;
      if (typeof words === "string") return text(`${textOf(uri)}:\n${words}`);
      return pictureOf({ data: resource.blob ?? "", mimeType: mimeType ?? "" }) ?? leftOut(textOf(uri), mimeType);
    }
    case "resource_link":
      return text([textOf(block.uri), block.title ?? block.name, block.description].filter(isText).join(" "));
    default:
      return leftOut(textOf(block.type) || "something", block.mimeType);
  }
};

const isText = (value: Json | undefined): value is string => typeof value === "string" && value !== "";
const textOf = (value: Json | undefined): string => (typeof value === "string" ? value : "");

const leftOut = (what: string, kind: Json | undefined): TextBlock =>
  text(`[${what}${isText(kind) ? ` (${kind})` : ""} was left out]`);

const pictureOf = ({ data, mimeType }: JsonObject): ImageBlock | undefined => {
  if (!isText(data) || !isText(mimeType) || !PICTURES.includes(mimeType)) return undefined;
  if (data.length > MOST_PICTURE || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return undefined;
  return { type: "image", source: { kind: "base64", mediaType: mimeType, data } };
};

const withFewPictures = (blocks: readonly ResultBlock[]): readonly ResultBlock[] => {
  let pictures = 0;
  return blocks.map((block) =>
    block.type === "image" && ++pictures > MOST_PICTURES ? leftOut("one more picture", undefined) : block,
  );
};
