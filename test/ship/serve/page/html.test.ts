import { html } from '../../../../src/ship/serve/page/html.ts';
import * as assert from '../../../support/assert.ts';
import { suite } from '../../../support/suite.ts';

const test = suite('ship/serve/page/html');

test('values are escaped once, markup is not, and nothing is nothing', () => {
  const inner = html`<b>${'a & "b"'}</b>`;
  const page = html`<p title="${'"><script>'}">${inner}${[false, undefined, 0, '']}</p>`;
  assert.is(page.text, '<p title="&quot;&gt;&lt;script&gt;"><b>a &amp; &quot;b&quot;</b>0</p>');
});

test('characters that hide or turn text are shown', () => {
  assert.not.match(html`${'a\u202Eb\u0007'}`.text, /[\u202E\u0007]/);
});

test.run();
