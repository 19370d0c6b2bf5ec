/** Each request is declared once: in its table, whose fields other tables share but do not repeat. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { REQUESTS } from '../../src/cli/requests.ts';
import { FOLDERS, usesRequests } from '../../scripts/docs/folders.ts';
import type { Field } from '../../src/core/field.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/requests');
const SRC = join(import.meta.dirname, '../../src');

const FIELDS = REQUESTS.flatMap(({ name, fields, options }) =>
  Object.entries<Field>({ ...fields, ...options }).map(([field, declared]) => ({ command: name, field, declared })),
);

test('a field with one meaning has one declaration', () => {
  const known = new Map<string, { readonly command: string; readonly declared: Field }>();
  const again: string[] = [];
  for (const { command, field, declared } of FIELDS) {
    const key = JSON.stringify([field, declared.value, declared.help, declared.hint, declared.required]);
    const first = known.get(key) ?? { command, declared };
    known.set(key, first);
    if (first.declared.read !== declared.read) again.push(`${field} of ${first.command} and of ${command}`);
  }
  assert.equal(again, []);
  assert.ok(FIELDS.length > 2 * known.size, `${FIELDS.length} options of ${known.size} declarations`);
});

test('outside of its tables, no type of those that use them declares the fields of a request', async () => {
  const names = new Set(FIELDS.map(({ field }) => field));
  const found: string[] = [];
  for (const { name: folder } of FOLDERS.filter(usesRequests)) {
    for (const file of await readdir(join(SRC, folder), { recursive: true })) {
      if (!file.endsWith('.ts')) continue;
      const text = await readFile(join(SRC, folder, file), 'utf8');
      for (const [whole, type] of text.matchAll(/^(?:export )?interface (\w*Request)\b[^]*?^\}/gm)) {
        const fields = [...whole.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, field = '']) => field);
        if (fields.some((field) => names.has(field))) found.push(`${folder}/${file} ${type}`);
      }
    }
  }
  assert.equal(found, []);
});

test.run();
