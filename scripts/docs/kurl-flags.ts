/** The flags of kURL's scripts, and what they do here. */
import { FLAGS, takesValue, type FlagMeaning } from '../../src/spec/flags.ts';
import { settingOf } from '../../src/spec/settings.ts';
import type { Row } from '../../src/kurl/compatibility/rows.ts';

/** What there is to say besides what a flag stands for. */
const NOTES: Readonly<Record<string, string>> = {
  'installer-spec-file': 'same: laid over the spec that comes with the packages',
  'kurl-install-directory': 'same: `kurl` below that folder, as with `--install-dir FOLDER/kurl`',
  labels: 'differs: hooks find them in `NODE_LABELS`; curlew itself labels no nodes',
  'storage-migration-ready-timeout': 'absent: taken with a warning: storage is not migrated',
  'force-reapply-addons': 'same: without effect, it only warns; `--reapply` does it',
  'dismiss-host-packages-preflight': 'same: without effect, and it is said',
  'auto-upgrades-enabled': 'same: without effect, and it is said',
  'preflight-ignore-warnings': 'same: without effect, and it is said: that is how it is anyway',
  'additional-no-proxy-addresses': 'same: added to those of the spec; may stand several times',
  'kubernetes-version': 'same: a `v` in front is dropped; the package must be there',
  'primary-host': 'same: may stand several times',
  'secondary-host': 'same: may stand several times',
};

/** `name` is the flag as it is written. */
export interface FlagRow extends Row {
  /** What it fills, for people. */
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
