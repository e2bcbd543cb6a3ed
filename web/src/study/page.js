export function studyPage() {
  return [];
}
