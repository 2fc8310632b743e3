-- For the keys of a full server: one that has a record already takes no more room when it is
-- reserved again. Any other is refused.
do
  local row, damage = read()
  if not row and not damage then
    return {'full'}
  end
end
