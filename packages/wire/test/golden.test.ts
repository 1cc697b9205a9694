import assert from "node:assert/strict";
import { test } from "node:test";
import { anthropic, bytesOf, directiveText, FrozenPrefix, gemini, nextMarkers, prepare } from "../src/index.ts";
import { grown, head, readTurn, userText } from "./conversations.ts";

const cost = `The bytes of a reference request changed. Every session that is open when this is released pays for its whole
prefix again, once: about 1.25 × its length instead of 0.1 ×. If that is meant, say so in CHANGELOG.md and put the new
value here; if not, find what made the bytes differ (law 1: bytes are made once).`;

test("the bytes of the reference prefix have not changed", () => {
  const prefix = grown([userText("Read both files."), ...readTurn(2), userText("Thanks.")]);
  const markers = nextMarkers(prefix);
  const body = bytesOf(prepare({ protocol: anthropic, prefix, markers, closing: { maxTokens: 1_024, stream: true } }));
  assert.equal(
    body.toString(),
    `{"model":"claude-sonnet-5",` +
      `"tools":[{"name":"Read","description":"Reads a file.","input_schema":{"type":"object","properties":{}}},` +
      `{"name":"Agent","description":"Starts a fork.","input_schema":{"type":"object","properties":{}}}],` +
      `"system":[{"type":"text","text":"You are a test.","cache_control":{"type":"ephemeral"}}],` +
      `"messages":[{"role":"user","content":[{"type":"text","text":"Read both files."}]},` +
      `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_0","name":"Read","input":{}},` +
      `{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}]},` +
      `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0","content":[{"type":"text","text":"content for toolu_0"}]},` +
      `{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"content for toolu_1"}]}]},` +
      `{"role":"user","content":[{"type":"text","text":"Thanks.","cache_control":{"type":"ephemeral"}}]}],` +
      `"max_tokens":1024,"stream":true}`,
    cost,
  );
  assert.equal(prefix.hash, "QfkQRriXMlWApt23RlrXqWoOyKAPcgi1UZsXm5xNRtc", cost);
});

test("the bytes of the text that every fork gets have not changed", () => {
  const words = grown([userText(directiveText("do it"))]);
  assert.equal(words.hash, "C1rPaYCNMW_ZFgkI77FY3XFR8pWGQlv2CIE5faHwT6I", cost);
});

test("the bytes of the reference prefix on Gemini have not changed", () => {
  const opened = FrozenPrefix.open(gemini.encoder, { ...head, model: "gemini-3.8-flash" });
  const prefix = grown([userText("Read both files."), ...readTurn(2), userText("Thanks.")], opened);
  const closing = { maxTokens: 1_024, stream: true };
  assert.equal(
    bytesOf(prepare({ protocol: gemini, prefix, markers: [], closing })).toString(),
    `{"safetySettings":[],"tools":[{"functionDeclarations":[` +
      `{"name":"Read","description":"Reads a file.","parametersJsonSchema":{"type":"object","properties":{}}},` +
      `{"name":"Agent","description":"Starts a fork.","parametersJsonSchema":{"type":"object","properties":{}}}]}],` +
      `"systemInstruction":{"parts":[{"text":"You are a test."}]},` +
      `"contents":[{"parts":[{"text":"Read both files."}],"role":"user"},` +
      `{"role":"model","parts":[{"functionCall":{"id":"toolu_0","name":"Read","args":{}},"thoughtSignature":"skip_thought_signature_validator"},` +
      `{"functionCall":{"id":"toolu_1","name":"Read","args":{}}}]},` +
      `{"role":"user","parts":[{"functionResponse":{"id":"toolu_0","name":"Read","response":{"output":"content for toolu_0"}}},` +
      `{"functionResponse":{"id":"toolu_1","name":"Read","response":{"output":"content for toolu_1"}}}]},` +
      `{"parts":[{"text":"Thanks."}],"role":"user"}],` +
      `"generationConfig":{"maxOutputTokens":1024}}`,
    cost,
  );
  assert.equal(prefix.hash, "Iou1sduq3iAzBkKsme7gi77PdM-t014ZDjm4WULQGdk", cost);
});
