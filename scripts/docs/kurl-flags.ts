/** The flags of kURL's scripts, and their meaning in curlew. */
import { FLAGS, takesValue, type FlagMeaning } from '../../src/spec/flags.ts';
import { settingOf } from '../../src/spec/settings.ts';
import type { Row } from '../../src/kurl/compatibility/rows.ts';

/** Remarks on flags. */
const NOTES: Readonly<Record<string, string>> = {
  'installer-spec-file': 'same: overrides the spec in the bundle',
  'kurl-install-directory': 'same: `kurl` below that folder, as with `--install-dir FOLDER/kurl`',
  labels: 'differs: hooks find them in `NODE_LABELS`; curlew itself labels no nodes',
  'storage-migration-ready-timeout': 'absent: accepted with a warning: storage is not migrated',
  'force-reapply-addons': 'same: no effect, only a warning; use `--reapply`',
  'dismiss-host-packages-preflight': 'same: no effect, with a note',
  'auto-upgrades-enabled': 'same: no effect, with a note',
  'preflight-ignore-warnings': 'same: no effect, with a note: this is the default',
  'additional-no-proxy-addresses': 'same: added to those of the spec; may be repeated',
  'kubernetes-version': 'same: a leading `v` is dropped; the package must exist',
  'primary-host': 'same: may be repeated',
  'secondary-host': 'same: may be repeated',
};

/** `name` is the flag as typed. */
export interface FlagRow extends Row {
  /** The variable or setting that it sets, for people. */
  readonly fills: string;
}

export const FLAG_ROWS: readonly FlagRow[] = Object.entries(FLAGS).map(([flag, meaning]) => {
  const [, status = 'same', note = ''] = /^(same|differs|absent): (.*)$/s.exec(NOTES[flag] ?? 'same: ') ?? [];
  const name = takesValue(meaning) ? `${flag}=…` : flag;
  return { name, status: status as Row['status'], note, fills: fills(meaning) };
});

function fills(meaning: FlagMeaning): string {
  if (meaning.kind === 'variable') return `\`${meaning.variable}\``;
  if (meaning.kind !== 'setting') return '';
  const [specName = '', field = ''] = meaning.setting.split('.');
  return `\`${meaning.setting}\`: \`${settingOf(specName, field)?.variable ?? ''}\``;
}
