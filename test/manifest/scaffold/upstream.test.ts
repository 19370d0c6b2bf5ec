import { upstreamOf } from '../../../src/manifest/scaffold/upstream.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('scaffold/upstream');

test('the newest version of a release of GitHub is known from its address', () => {
  const from = 'https://github.com/example/web/releases/download/v{version}/web.yaml';
  assert.equal(upstreamOf(from, undefined, false), {
    upstream: from,
    newest: 'https://github.com/example/web/releases/latest',
  });
  assert.is(upstreamOf(from, 'https://example.com/newest', false).newest, 'https://example.com/newest');
  assert.equal(upstreamOf(undefined, undefined, false), { upstream: '', newest: '' });
});

test('a chart may be told by its registry or repository', () => {
  assert.is(
    upstreamOf('oci://registry.example/charts/web', undefined, true).upstream,
    'oci://registry.example/charts/web',
  );
  assert.is(upstreamOf('https://charts.example', undefined, true).newest, '');
});

for (const [title, upstream, newest] of [
  ['no place for the version', 'https://example.com/web.yaml', undefined],
  ['another scheme', 'file:///etc/{version}', undefined],
  ['a quote, which would end the text of the script', "https://example.com/{version}'; rm -rf /; '", undefined],
  ['a blank', 'https://example.com/ {version}', undefined],
  ['a line end', 'https://example.com/{version}\nrm', undefined],
  ['a dollar and a command', 'https://example.com/{version}$(id)', undefined],
  ['a password, which would be committed', 'https://user:secret@example.com/{version}', undefined],
  ['no host', 'https:///{version}', undefined],
  ['a newest that is no address', 'https://example.com/{version}', 'latest'],
] as const) {
  test(`refused: ${title}`, () => {
    const error = assert.throwsWith(() => upstreamOf(upstream, newest, false), 'USAGE');
    assert.not.match(`${error.message} ${error.hint ?? ''}`, 'secret');
  });
}

test.run();
