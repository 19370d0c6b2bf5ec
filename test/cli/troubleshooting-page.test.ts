/** docs/troubleshooting.md quotes only what the code prints: each line comes from a text of the source. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { COMMANDS } from '../../src/cli/commands.ts';
import { REQUESTS } from '../../src/cli/requests.ts';
import { splitName } from '../../src/cli/split-name.ts';
import { isErrorCode } from '../../src/core/errors.ts';
import { parametersOf } from '../../src/core/request.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli/troubleshooting-page', { timeoutMs: 60_000 });

/** Fixed characters that a text needs to identify a message. */
const MIN_FIXED = 10;

interface Text {
  /** Matches the end of a line that the text makes. */
  readonly pattern: RegExp;
  /** Source of the file. */
  readonly source: string;
}

/** A text from its fixed parts; anything may be between them. Undefined if it has too few of them. */
function textOf(parts: readonly string[], source: string): Text | undefined {
  if (parts.join('').replaceAll(/\s/g, '').length < MIN_FIXED) return undefined;
  const fixed = parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return { pattern: new RegExp(`${fixed.join('.*')}$`), source };
}

interface Node {
  readonly type?: string;
  readonly value?: unknown;
  readonly quasis?: readonly { readonly value: { readonly cooked: string } }[];
}

function typeScriptTexts(source: string): readonly Text[] {
  const found: (readonly string[])[] = [];
  JSON.stringify(parseSync('a.ts', source).program, (_, node: unknown) => {
    const { type, value, quasis } = (node ?? {}) as Node;
    if (type === 'Literal' && typeof value === 'string') found.push([value]);
    if (type === 'TemplateLiteral') found.push((quasis ?? []).map((part) => part.value.cooked));
    return typeof node === 'bigint' ? '' : node;
  });
  // A message of several lines is quoted line by line.
  return found.flatMap(
    (parts) =>
      textOf(
        parts.map((part) => part.split('\n', 1)[0] ?? ''),
        source,
      ) ?? [],
  );
}

function shellTexts(source: string): readonly Text[] {
  return [...source.matchAll(/"([^"\n]*)"/g)].flatMap(
    ([, text = '']) => textOf(text.split(/\$\w+|\$\{[^}]*\}/), source) ?? [],
  );
}

async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

const page = await readFile('docs/troubleshooting.md', 'utf8');
const quoted = [...page.matchAll(/^```text\n(.*?)^```$/gms)].flatMap(([, block = '']) => block.trimEnd().split('\n'));
const texts = [
  ...(await Promise.all((await filesBelow('src')).map(async (file) => typeScriptTexts(await readFile(file, 'utf8'))))),
  ...(await Promise.all(
    (await filesBelow('scripts/bundle')).map(async (file) => shellTexts(await readFile(file, 'utf8'))),
  )),
].flat();

/** Whether the code can print this line; with an error code, whether the file of the text also has that code. */
function isPrinted(line: string): boolean {
  const [, code, message = ''] = /^(?:error ([A-Z_]+): | {2}hint: )?(.*)$/.exec(line) ?? [];
  if (code !== undefined && !isErrorCode(code)) return false;
  return texts.some(
    ({ pattern, source }) => pattern.test(message) && (code === undefined || source.includes(`'${code}'`)),
  );
}

for (const line of quoted) {
  test(`curlew prints: ${line.trim().slice(0, 90)}`, () => {
    assert.ok(isPrinted(line), line);
  });
}

test('a message that is not in the source is found', () => {
  assert.not.ok(isPrinted('error NOT_FOUND: the add-on dns was eaten by a bird'));
  assert.not.ok(isPrinted('error DOWNGRADE: cannot find a cluster: there is no kubeconfig'));
  assert.not.ok(isPrinted('error EATEN: this would downgrade dns from 2 to 1'));
});

test('each command and option that this page and the index of codes name exists', async () => {
  const options = new Set(REQUESTS.flatMap((of) => parametersOf(of).options.map(([name]) => `--${name}`)));
  for (const text of [page, await readFile('docs/errors.md', 'utf8')]) {
    for (const [, span = ''] of text.replaceAll(/^```.*?^```$/gms, '').matchAll(/`([^`\n]+)`/g)) {
      if (span.startsWith('curlew ')) {
        const { name } = splitName(span.split(' ').slice(1));
        assert.ok(name.endsWith(':') || COMMANDS.has(name), span);
      }
      for (const [option] of span.matchAll(/--[a-z-]+/g)) assert.ok(option === '--json' || options.has(option), span);
    }
  }
});

test('each section quotes a message, and says why and what to do', () => {
  const sections = page.split(/^### /m).slice(1);
  assert.ok(sections.length > 20);
  for (const section of sections)
    for (const part of ['```text\n', '\n**Why**: ', '\n**What to do**: ']) assert.match(section, part);
});

test.run();
